"""One WebSocket: whole messages in and out, of a bounded size, from somebody who is still there.

Each text frame is one message; others are ignored. What arrives is counted as bodies are, and nothing more
is read from the network before the last message was taken. A frame may be empty, and cost as much as others:
what came is taken apart in its app's turns.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final

from starlette.requests import Request
from websockets.exceptions import InvalidState
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request as Opening
from websockets.protocol import State
from websockets.server import ServerProtocol

from clawdforge.core.pacing.pace import AppPace
from clawdforge.http.connections.tunnel import Tunnel
from clawdforge.http.requests.bodies import BodyBudget, Claim
from clawdforge.wire.errors import ForgeAPIError, InvalidRequest

DEAD_AFTER: Final = 4
"""For so many heartbeats nothing may be heard of the other side; any byte of it counts, since it cannot
answer a ping in the middle of a long frame."""

FAREWELL_SECS: Final = 2.0
SLICE_BYTES: Final = 1024
"""So much is taken apart at once: it may be a hundred frames and more, which take milliseconds."""

PASS_SECS: Final = 0.002
"""So long is taken apart before everybody else has a turn."""

LONGEST_REASON: Final = 100
"""A frame that closes has room for 123 bytes."""


class WebSocket:
    """Belongs to one request, which stays open for as long as it does."""

    def __init__(
        self, opening: bytes, bodies: BodyBudget, pace: AppPace, max_bytes: int, heartbeat_secs: float
    ) -> None:
        """`opening` is the request as it was sent. Raises InvalidRequest if it opens no WebSocket."""
        self._frames = ServerProtocol(max_size=max_bytes)
        self._frames.receive_data(opening)
        asked = next((event for event in self._frames.events_received() if isinstance(event, Opening)), None)
        answer = None if asked is None else self._frames.accept(asked)
        if answer is None or answer.status_code != 101:
            raise InvalidRequest("this address is for WebSockets; connect to it with a client that opens one")
        self._answer = answer
        self._bodies = bodies
        self._pace = pace
        self._heartbeat_secs = heartbeat_secs
        self._rest = bytearray()  # what came and was not taken apart
        self._most_raw = max_bytes + max_bytes // 4 + (1 << 16)
        self._raw = 0  # bytes since the last whole message, with what frames add
        self._text: bytearray | None = None
        self._claims = ExitStack()
        self._claim: Claim | None = None
        self._messages: deque[tuple[bytes, ExitStack]] = deque()
        self._taken = ExitStack()
        self._came = asyncio.Event()
        self._gone = asyncio.Event()
        self._heard_at = 0.0
        self._tunnel: Tunnel | None = None

    def open(self, tunnel: Tunnel, headers: dict[str, str]) -> None:
        """Answer the request. From now on there is no other way to answer it."""
        self._tunnel = tunnel
        self._heard_at = asyncio.get_running_loop().time()
        tunnel.enter(self)
        for name, value in headers.items():
            self._answer.headers[name] = value
        self._frames.send_response(self._answer)
        self._flush()

    async def read(self) -> bytes:
        """The next message as a line; nothing when there will be no more."""
        self._taken.close()
        while not self._messages:
            if self._gone.is_set() or self._frames.state is not State.OPEN:
                return b""
            await self._take_more()
        text, self._taken = self._messages.popleft()
        return text.replace(b"\n", b" ") + b"\n"  # between the words of JSON only: in a text it is escaped

    async def write(self, pieces: Sequence[bytes]) -> None:
        """Each line is a message. Waits for room; OSError when nobody reads any longer."""
        if self._tunnel is None or self._gone.is_set():
            raise BrokenPipeError
        try:
            for line in b"".join(pieces).splitlines():
                self._frames.send_text(line)
        except InvalidState:
            raise BrokenPipeError from None
        self._flush()
        await self._tunnel.drain()

    def unread(self) -> int:
        return 0

    async def keep_alive(self) -> None:
        """Ask now and then whether the other side is there; returns when it is not."""
        clock, most = asyncio.get_running_loop().time, DEAD_AFTER * self._heartbeat_secs
        while not self._gone.is_set() and clock() - self._heard_at < most:
            await asyncio.sleep(self._heartbeat_secs)
            if self._frames.state is State.OPEN and self._tunnel is not None and not self._tunnel.is_choked:
                self._frames.send_ping(b"")
                self._flush()

    async def close(self, code: CloseCode, reason: str) -> None:
        """Say why, if it is still heard, and end the connection."""
        if self._tunnel is None:
            return
        if self._frames.state is State.OPEN and not self._gone.is_set():
            self._frames.send_close(code, reason[:LONGEST_REASON])
            self._flush()
        try:
            async with asyncio.timeout(FAREWELL_SECS):
                while not self._gone.is_set():
                    self._drop_messages()
                    await self._take_more()
        except TimeoutError:
            self._tunnel.abort()
            await self._gone.wait()  # the event loop says so in its next pass
        finally:
            self._release()

    def take(self, data: bytes) -> None:
        self._heard_at = asyncio.get_running_loop().time()
        self._rest += data
        self._came.set()
        if self._tunnel is not None:
            self._tunnel.hold_back()

    def lose(self) -> None:
        self._gone.set()
        self._came.set()

    async def _take_more(self) -> None:
        """Take apart what came, up to the next message; where nothing is left of it, wait for more."""
        if not self._rest:
            self._came.clear()
            if self._tunnel is not None:
                self._tunnel.go_on()
            await self._came.wait()
            return
        await asyncio.sleep(0)
        await self._pace.enter()
        clock = asyncio.get_running_loop().time
        pause_at = clock() + PASS_SECS
        while self._rest and not self._messages and clock() < pause_at:
            piece = bytes(self._rest[:SLICE_BYTES])
            del self._rest[:SLICE_BYTES]
            self._take_apart(piece)

    def _take_apart(self, piece: bytes) -> None:
        self._raw += len(piece)
        try:
            self._count(len(piece))
        except ForgeAPIError as error:
            self._frames.fail(CloseCode.TRY_AGAIN_LATER, error.message[:LONGEST_REASON])
        self._frames.receive_data(piece)
        for event in self._frames.events_received():
            if isinstance(event, Frame):
                self._take_frame(event)
        if self._raw > self._most_raw:
            self._frames.fail(CloseCode.MESSAGE_TOO_BIG, "a message is too long")
        is_open = self._frames.state is State.OPEN
        if is_open and self._tunnel is not None and self._tunnel.is_choked:
            self._frames.data_to_send()  # answers to pings, which nobody reads
        else:
            self._flush()
        is_partial = is_open and (self._text is not None or bool(self._frames.reader.buffer))
        if not is_partial:
            self._forget_partial()
        if self._tunnel is not None:
            self._tunnel.expect(more=is_partial)

    def _take_frame(self, frame: Frame) -> None:
        if frame.opcode is Opcode.TEXT:
            self._text = bytearray(frame.data)
        elif frame.opcode is Opcode.CONT and self._text is not None:
            self._text += frame.data
        else:
            return
        if frame.fin and self._text is not None:
            self._messages.append((bytes(self._text), self._claims))
            self._claims = ExitStack()
            self._forget_partial()

    def _forget_partial(self) -> None:
        self._claims.close()
        self._claim, self._text, self._raw = None, None, 0

    def _count(self, size: int) -> None:
        if self._claim is None:
            self._claim = self._claims.enter_context(self._bodies.claim(self._pace.app))
        self._claim.add(size)

    def _flush(self) -> None:
        pieces = self._frames.data_to_send()
        if self._tunnel is not None and not self._gone.is_set():
            self._tunnel.write(b"".join(pieces))
            if b"" in pieces:  # which stands for the end
                self._tunnel.end()

    def _release(self) -> None:
        self._taken.close()
        self._claims.close()
        self._drop_messages()

    def _drop_messages(self) -> None:
        for _, claims in self._messages:
            claims.close()
        self._messages.clear()


def write_opening(request: Request) -> bytes:
    """The head of a request as it was sent, as far as it matters."""
    lines = [b"GET " + request.scope["raw_path"] + b" HTTP/1.1"]
    lines += [name + b": " + value for name, value in request.scope["headers"]]
    return b"\r\n".join([*lines, b"", b""])
