"""A node's way to Postgres: it can be held, so that bytes come late, and cut while they are on their way.

It follows the protocol closely enough to know where a message ends and whether a transaction is open, so that
a round may choose between bytes that begin a transaction and those in the middle of one.
"""

import asyncio
import contextlib
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Final

PIECE: Final = 1 << 16
IDLE: Final = ord("I")
READY: Final = ord("Z")
WRITES: Final = b"COMMIT"
"""Whoever reads rolls back."""


class Moment(Enum):
    """From which message on a connection is held."""

    NOW = "now"
    BETWEEN = "between"  # the first of a transaction: it has no locks
    INSIDE = "inside"  # one of an open transaction, with all its locks


class Proxy:
    """`find_target` is the socket of the Postgres that counts at this moment."""

    def __init__(self, find_target: Callable[[], Path]) -> None:
        self.moment: Moment | None = None  # while connections are to be held
        self.port = 0
        self._find_target = find_target
        self._is_cut = False
        self._ways: set[_Way] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def held(self) -> int:
        """How many bytes wait here that a node has sent."""
        return sum(len(way.held) for way in self._ways)

    def hold(self, moment: Moment) -> None:
        self.moment = moment

    def cut(self) -> None:
        """End all connections as the node sees them. What it has sent is still on its way to Postgres."""
        self._is_cut = True
        for way in self._ways:
            way.node.transport.abort()

    def release(self) -> None:
        """Deliver what was held, in order. New connections are let in again."""
        self.moment, self._is_cut = None, False
        for way in self._ways:
            way.release()

    def is_writing(self) -> bool:
        """Whether a transaction is open that may write."""
        return any(way.is_open and way.writes for way in self._ways)

    def drop(self) -> None:
        """End all connections at both ends, as when another Postgres takes this one's place."""
        for way in self._ways:
            way.end()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            writer.transport.abort()
            return
        try:
            answers, postgres = await asyncio.open_unix_connection(str(self._find_target()))
        except OSError:
            writer.transport.abort()
            return
        way = _Way(self, writer, postgres)
        self._ways.add(way)
        try:
            await asyncio.gather(way.send(reader), way.answer(answers))
        finally:
            self._ways.discard(way)
            way.end()


class _Way:
    """One connection. `held` is what its node has sent and Postgres has not got."""

    def __init__(self, proxy: Proxy, node: asyncio.StreamWriter, postgres: asyncio.StreamWriter) -> None:
        self.node = node
        self.held = bytearray()
        self.is_open = False  # a transaction
        self.writes = False
        self._proxy = proxy
        self._postgres = postgres
        self._is_held = False
        self._may_go = asyncio.Event()
        self._messages = Messages(has_letter=False)
        self._answers = Messages()

    async def send(self, reader: asyncio.StreamReader) -> None:
        """Pass on what the node sends, message by message. What is held outlives the node's connection."""
        with contextlib.suppress(OSError):
            while data := await reader.read(PIECE):
                for message in self._messages.split(data):
                    self._take(message)
                await self._postgres.drain()
        with contextlib.suppress(OSError):
            if self._is_held:
                await self._may_go.wait()
            self._postgres.write_eof()

    async def answer(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(PIECE):
                for message in self._answers.split(data):
                    if message[0] == READY:
                        self.is_open = message[5] != IDLE
                self.node.write(data)
                await self.node.drain()
        if self._is_held:  # a node that is cut off is not told either
            await self._may_go.wait()
        self.node.transport.abort()

    def release(self) -> None:
        self._is_held = False
        self._may_go.set()
        self._postgres.write(bytes(self.held))
        self.held.clear()

    def end(self) -> None:
        for writer in (self.node, self._postgres):
            writer.transport.abort()
        self._may_go.set()

    def _take(self, message: bytes) -> None:
        self.writes = self.writes or WRITES in message
        if not self._is_held and self._is_time():
            self._is_held = True
            self._may_go.clear()
        if self._is_held:
            self.held += message
        else:
            self._postgres.write(message)

    def _is_time(self) -> bool:
        moment = self._proxy.moment
        return moment is Moment.NOW or moment is (Moment.INSIDE if self.is_open else Moment.BETWEEN)


class Messages:
    """Cuts a stream into messages: a letter, four bytes that say how long the rest is, the rest.

    The first message of a node has no letter.
    """

    def __init__(self, *, has_letter: bool = True) -> None:
        self._has_letter = has_letter
        self._rest = bytearray()

    def split(self, data: bytes) -> list[bytes]:
        self._rest += data
        found = []
        while (size := self._size()) is not None and size <= len(self._rest):
            found.append(bytes(self._rest[:size]))
            del self._rest[:size]
            self._has_letter = True
        return found

    def _size(self) -> int | None:
        start = int(self._has_letter)
        if len(self._rest) < start + 4:
            return None
        return start + int.from_bytes(self._rest[start : start + 4])
