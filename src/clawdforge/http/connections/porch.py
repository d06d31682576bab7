"""The porch: whoever connects waits here until it has said what it wants, then for its app's turn to come in.

To set up a connection costs as much as a short answer, and nobody knows yet whose it is. A bare socket costs
next to nothing, and the head of its request says whose it seems to be (`lanes.py`): a crowd of strangers, or
of one app, that connects thousands of times a second delays itself and no other.
"""

import asyncio
import errno
import logging
import re
import socket
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from clawdforge.http.connections.door import DoorLimits, peer_of
from clawdforge.http.connections.lanes import OPERATOR, Lanes
from clawdforge.http.errors import whole_answer
from clawdforge.wire.errors import TooSlow

log = logging.getLogger(__name__)

AT_ONCE: Final = 8
TAKE_SECS: Final = 0.00025
"""So many are taken from the kernel in a row, and for so long, before others are served. A turn takes some
thirty passes of the loop, and waits for this in each of them beside a crowd."""

SWEEP_SECS: Final = 0.02
"""So long nobody is sent away after some were."""

HEAD_BYTES: Final = 16 * 1024
"""Whoever has said so much comes in, whatever it was."""

WHOLE: Final = re.compile(rb"\r?\n\r?\n")
BEGUN: Final = re.compile(rb"[\r\n]*(?:[A-Z]{1,20}(?: .*)?)?", re.DOTALL)
"""The beginning of a request. Whatever else somebody says is no reason to wait for more of it."""

GONE: Final = bytes([7])
"""CLOSE: the state of a connection as the kernel tells it, in the first byte of `TCP_INFO`. One that has only
ended what it sends (CLOSE_WAIT) may still read an answer."""

NO_ROOM: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
NO_ROOM_SECS: Final = 1.0


class Porch:
    """Before one listening socket. Of those who have not said what they want, and of those who wait for their
    turn, there may be a quarter as many as inside. Where there is no room, the oldest goes, out of the
    longest line: of an app that waits, or of an address that has not said enough. The silent ones go a few at
    a time, so that there may be more for a while: whoever is sent away comes again at once, and to let one go
    for each that comes took half of the event loop.
    """

    def __init__(
        self,
        listener: socket.socket,
        limits: DoorLimits,
        lanes: Lanes,
        make_protocol: Callable[[], asyncio.Protocol],
    ) -> None:
        self._listener = listener
        self._is_unix = listener.family == socket.AF_UNIX
        self._most = max(1, min(limits.connections // 4, limits.silent // 2))
        self._most_for_a_while = limits.silent
        self._silent_secs = limits.header_secs
        self._lanes = lanes
        self._make_protocol = make_protocol
        self._loop = asyncio.get_running_loop()
        self._silent: dict[str, OrderedDict[socket.socket, float]] = {}  # by address, and until when
        self._lines: dict[str, OrderedDict[socket.socket, asyncio.Task[bool]]] = {}
        self._again: asyncio.TimerHandle | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self._open()

    def _open(self) -> None:
        self._loop.add_reader(self._listener, self._take)

    def close(self) -> None:
        """Take nobody any more, and send away who waits."""
        self._loop.remove_reader(self._listener)
        for timer in (self._again, self._sweep):
            if timer is not None:
                timer.cancel()
        for connection, peer in [(one, peer) for peer, line in self._silent.items() for one in line]:
            self._stop_listening(connection, peer)
            connection.close()
        for line in self._lines.values():
            for task in line.values():
                task.cancel()

    async def wait_closed(self) -> None:
        """Those who waited have left."""
        await asyncio.gather(
            *(task for line in self._lines.values() for task in line.values()), return_exceptions=True
        )

    def _take(self) -> None:
        end = self._loop.time() + TAKE_SECS
        for _ in range(AT_ONCE):
            if self._loop.time() > end:
                return  # the kernel calls again in the next pass
            try:
                connection, address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in NO_ROOM:
                    raise
                log.warning("no connection can be taken: %s", error.strerror)
                self._loop.remove_reader(self._listener)  # the kernel would call again and again
                self._again = self._loop.call_later(NO_ROOM_SECS, self._open)
                return
            connection.setblocking(False)
            self._look(connection, address)

    def _look(self, connection: socket.socket, address: Any) -> None:
        if self._is_unix:
            self._line_up(connection, OPERATOR)
            return
        head = _peek(connection)
        if head is None or (head and not _is_enough(head)):
            self._wait_for_words(connection, peer_of(address[0]), len(head or b""))
        else:
            self._decide(connection, head)

    def _decide(self, connection: socket.socket, head: bytes) -> None:
        if head and not _is_gone(connection):
            self._line_up(connection, self._lanes.find(head))
        else:
            connection.close()

    def _wait_for_words(self, connection: socket.socket, peer: str, known: int) -> None:
        count = self._count_silent()
        if count >= self._most_for_a_while:
            self._send_first_away(self._most_silent())
        line = self._silent.setdefault(peer, OrderedDict())
        line[connection] = self._loop.time() + self._silent_secs
        if count >= self._most:
            self._tidy_in(SWEEP_SECS)
        elif self._sweep is None:
            self._tidy_in(self._silent_secs)
        self._listen(connection, peer, known)

    def _count_silent(self) -> int:
        return sum(map(len, self._silent.values()))

    def _most_silent(self) -> str:
        return max(self._silent, key=lambda peer: len(self._silent[peer]))

    def _tidy_in(self, secs: float) -> None:
        """Unless it is to be tidied up earlier."""
        at = self._loop.time() + secs
        if self._sweep is not None:
            if self._sweep.when() <= at:
                return
            self._sweep.cancel()
        self._sweep = self._loop.call_at(at, self._tidy_up)

    def _tidy_up(self) -> None:
        """Send away who is overdue and who is one too many: a few, and others a little later."""
        self._sweep = None
        now = self._loop.time()
        while self._silent:
            is_crowded = self._count_silent() > self._most
            peer = self._most_silent() if is_crowded else min(self._silent, key=self._first_end)
            left = 0.0 if is_crowded else self._first_end(peer) - now
            if left > 0 or self._loop.time() > now + TAKE_SECS:
                self._tidy_in(max(SWEEP_SECS, left))
                return
            self._send_first_away(peer)

    def _first_end(self, peer: str) -> float:
        return next(iter(self._silent[peer].values()))

    def _send_first_away(self, peer: str) -> None:
        self._send_away(next(iter(self._silent[peer])), peer)

    def _listen(self, connection: socket.socket, peer: str, known: int) -> None:
        """Only more than this is news: the kernel would tell of what lies there again and again."""
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, known + 1)
        self._loop.add_reader(connection, self._hear, connection, peer, known)

    def _hear(self, connection: socket.socket, peer: str, known: int) -> None:
        """It has said more, or that it will say no more."""
        head = _peek(connection)
        if head is None:
            return
        if len(head) > known and not _is_enough(head):
            self._listen(connection, peer, len(head))
            return
        self._stop_listening(connection, peer)
        self._decide(connection, head if len(head) > known else b"")

    def _send_away(self, connection: socket.socket, peer: str) -> None:
        """Say why, if a request has begun; if it has come to its end in this very moment, take it.

        What was sent and is not read would take the answer away.
        """
        self._stop_listening(connection, peer)
        head = _peek(connection)
        if head and _is_enough(head):
            self._decide(connection, head)
            return
        with suppress(OSError):
            if connection.recv(HEAD_BYTES):
                connection.send(whole_answer(TooSlow()))
        connection.close()

    def _stop_listening(self, connection: socket.socket, peer: str) -> None:
        self._loop.remove_reader(connection)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
        line = self._silent[peer]
        del line[connection]
        if not line:
            del self._silent[peer]

    def _line_up(self, connection: socket.socket, lane: str) -> None:
        if sum(map(len, self._lines.values())) >= self._most:
            longest = max(self._lines.values(), key=len)
            longest.popitem(last=False)[1].cancel()
        line = self._lines.setdefault(lane, OrderedDict())
        task = line[connection] = self._loop.create_task(self._let_in(connection, lane), name="porch")
        task.add_done_callback(partial(self._leave, connection, lane))

    async def _let_in(self, connection: socket.socket, lane: str) -> bool:
        """Wait for its turn. False if it has gone meanwhile."""
        await self._lanes.wait(lane)
        if not self._is_unix and _is_gone(connection):
            return False
        try:
            await self._loop.connect_accepted_socket(self._make_protocol, connection)
        except OSError:  # it has gone just now
            return False
        return True

    def _leave(self, connection: socket.socket, lane: str, task: asyncio.Task[bool]) -> None:
        """It is inside, or it is to be closed; a task that was cancelled may not even have begun."""
        if task.cancelled() or not task.result():
            connection.close()
        line = self._lines.get(lane)
        if line is not None:
            line.pop(connection, None)
            if not line:
                del self._lines[lane]


def _peek(connection: socket.socket) -> bytes | None:
    """What it has said: None if nothing so far, and no bytes if it has hung up."""
    try:
        return connection.recv(HEAD_BYTES, socket.MSG_PEEK)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def _is_enough(head: bytes) -> bool:
    return len(head) >= HEAD_BYTES or bool(WHOLE.search(head)) or not BEGUN.fullmatch(head)


def _is_gone(connection: socket.socket) -> bool:
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1) == GONE
