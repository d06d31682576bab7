"""A WebSocket's frames are taken apart in turns: thousands of empty ones keep nobody else waiting."""

import asyncio
import struct

from websockets.frames import CloseCode

from clawdforge.core.pacing.pace import Pace
from clawdforge.http.connections.tunnel import TunnelEnd
from clawdforge.http.connections.websocket import WebSocket
from clawdforge.http.requests.bodies import BodyBudget

OPENING = (
    b"GET /acp HTTP/1.1\r\nHost: here\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
TEXT, CLOSE, PING = 1, 8, 9


def frame(kind: int, data: bytes = b"") -> bytes:
    return bytes([0x80 | kind, 0x80 | len(data)]) + bytes(4) + data


class Wire:
    """A connection whose other side is the test: what it reads is handed on in pieces, as by a network."""

    is_choked = False

    def __init__(self) -> None:
        self.end_of_it: TunnelEnd | None = None
        self.sent = b""
        self.free = asyncio.Event()
        self.is_partial = False
        self.was_cut = False

    def enter(self, end: TunnelEnd) -> None:
        self.end_of_it = end

    def write(self, data: bytes) -> None:
        self.sent += data

    async def drain(self) -> None:
        pass

    def expect(self, *, more: bool) -> None:
        self.is_partial = more

    def hold_back(self) -> None:
        self.free.clear()

    def go_on(self) -> None:
        self.free.set()

    def end(self) -> None:
        if self.end_of_it is not None:
            self.end_of_it.lose()

    def abort(self) -> None:
        self.was_cut = True
        self.end()


def opened() -> tuple[WebSocket, Wire, BodyBudget]:
    wire, bodies = Wire(), BodyBudget(1 << 20)
    line = WebSocket(OPENING, bodies, Pace().of("app"), 1 << 20, 15)
    line.open(wire, {})
    return line, wire, bodies


async def test_empty_frames_are_taken_apart_while_others_run() -> None:
    line, wire, _ = opened()
    passes = 0

    async def run_beside() -> None:
        nonlocal passes
        while True:
            await asyncio.sleep(0)
            passes += 1

    beside = asyncio.create_task(run_beside())
    line.take(frame(PING) * 20_000 + frame(TEXT, b"{}"))
    assert not wire.free.is_set()
    async with asyncio.timeout(60):
        assert await line.read() == b"{}\n"
    beside.cancel()
    assert passes > 10
    assert wire.sent.count(b"\x8a\x00") == 20_000


async def test_a_close_is_heard_behind_messages_that_nobody_reads_and_gives_back_what_they_took() -> None:
    line, wire, bodies = opened()
    long = bytes([0x81, 0xFF]) + struct.pack(">Q", 100_000) + bytes(4) + b"x" * 100_000
    line.take(long + frame(TEXT, b"{}") * 3)
    assert await line.read() == b"x" * 100_000 + b"\n"
    assert bodies.held > 0
    line.take(frame(TEXT, b"[]") + frame(CLOSE, struct.pack(">H", 1000)))
    async with asyncio.timeout(60):
        await line.close(CloseCode.GOING_AWAY, "enough")
        assert await line.read() == b""
    assert not wire.was_cut
    assert bodies.held == 0


async def test_the_door_is_told_while_a_message_has_come_in_part() -> None:
    line, wire, _ = opened()
    reading = asyncio.create_task(line.read())
    line.take(frame(TEXT, b"{}")[:1])
    async with asyncio.timeout(60):
        await wire.free.wait()
        assert wire.is_partial
        line.take(frame(TEXT, b"{}")[1:])
        assert await reading == b"{}\n"
    assert not wire.is_partial
