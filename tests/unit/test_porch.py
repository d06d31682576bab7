"""Whoever connects waits on the porch for its turn, as a bare socket; who is gone is not let in."""

import asyncio
import logging
import socket
import struct
from collections.abc import AsyncIterator, Mapping, Sized
from contextlib import ExitStack, suppress
from unittest.mock import Mock

import pytest

from clawdforge.core.pacing.loop_turns import LoopTurns
from clawdforge.http.connections.door import DoorLimits
from clawdforge.http.connections.lanes import Lanes
from clawdforge.http.connections.porch import AT_ONCE, HEAD_BYTES, Porch

RESET = struct.pack("ii", 1, 0)
GOOD = "good"


class Guest(asyncio.Protocol):
    def __init__(self, came: list[str]) -> None:
        self._came = came

    def data_received(self, data: bytes) -> None:
        self._came.append(data.split(b" ")[1].decode())


def count(lines: Mapping[str, Sized]) -> int:
    return sum(map(len, lines.values()))


class Place:
    """A porch before a real socket, with a known app."""

    def __init__(self, limits: DoorLimits) -> None:
        self.came: list[str] = []
        self.clients = ExitStack()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.listener.setblocking(False)
        self.lanes = Lanes(Mock(loop_turns=LoopTurns()))
        self.lanes.remember({"headers": [(b"authorization", f"Bearer {GOOD}".encode())]}, "quiet")
        self.porch = Porch(self.listener, limits, self.lanes, lambda: Guest(self.came))

    def knock(
        self, path: str = "/", token: str = "", *, words: bool = True, source: str = "127.0.0.1"
    ) -> socket.socket:
        there = self.listener.getsockname()
        client = self.clients.enter_context(socket.create_connection(there, source_address=(source, 0)))
        client.settimeout(10)
        if words:
            client.sendall(f"GET {path} HTTP/1.1\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        return client

    def hold(self) -> asyncio.Event:
        """From now on nobody comes in before this is set."""
        gate = asyncio.Event()

        async def wait(_lane: str) -> None:
            await gate.wait()

        self.lanes.wait = wait  # type: ignore[method-assign, assignment]
        return gate

    async def until(self, count: int) -> None:
        async with asyncio.timeout(30):
            while len(self.came) < count:  # noqa: ASYNC110 - what comes is told by no event
                await asyncio.sleep(0.001)

    async def until_taken(self, *, waiting: int = 0, silent: int = 0) -> None:
        """Until so many are on the porch."""
        async with asyncio.timeout(30):
            while (count(self.porch._lines), count(self.porch._silent)) != (waiting, silent):  # noqa: ASYNC110
                await asyncio.sleep(0.001)

    async def until_known(self, size: int) -> None:
        """Until so much of what the only one has said is known: the kernel is to tell of more."""
        ((connection,),) = self.porch._silent.values()
        async with asyncio.timeout(30):
            while connection.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT) != size + 1:  # noqa: ASYNC110
                await asyncio.sleep(0.001)

    async def until_closed(self, client: socket.socket) -> None:
        with suppress(ConnectionResetError):  # what it had said was not read
            assert await asyncio.to_thread(client.recv, 1) == b""

    def close(self) -> None:
        self.porch.close()
        self.listener.close()
        self.clients.close()


@pytest.fixture
async def place(request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    found = Place(getattr(request, "param", DoorLimits()))
    yield found
    found.close()


def hang_up(client: socket.socket) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    client.close()


async def test_whoever_has_something_to_say_comes_in(place: Place) -> None:
    place.knock("/one")
    await place.until(1)
    late = place.knock(words=False)
    await place.until_taken(silent=1)
    late.sendall(b"GET /two HTTP/1.1\r\n\r\n")
    await place.until(2)
    assert place.came == ["/one", "/two"]


async def test_half_a_head_waits_outside_and_costs_nothing(place: Place) -> None:
    """Byte by byte, so that each is news, and no longer than until its end."""
    place.hold()
    half = place.knock(words=False)
    await place.until_taken(silent=1)
    looks = Mock(wraps=place.porch._hear)
    place.porch._hear = looks  # type: ignore[method-assign]
    said = b"GET /slow HTTP/1.1\r\nHost: here\r\n\r\n"
    for number in range(len(said) - 1):
        half.sendall(said[number : number + 1])
    await place.until_known(len(said) - 1)
    calls = looks.call_count
    for _ in range(10):
        await asyncio.sleep(0.001)
    assert looks.call_count == calls, "what lies there is told again and again"
    half.sendall(said[-1:])
    await place.until_taken(waiting=1)


async def test_what_comes_after_half_a_head_is_heard_byte_by_byte(place: Place) -> None:
    """Inside, every byte is news again."""
    half = place.knock(words=False)
    half.sendall(b"GET /half HTTP/1.1\r\n")
    await place.until_taken(silent=1)
    half.sendall(b"\r\n")
    await place.until(1)
    half.sendall(b" ")
    await place.until(2)


@pytest.mark.parametrize("said", [b"\x16\x03\x01\x02", b"hello\r\n", b"GET/ ", b"GET / HTTP/1.1\n\n"])
async def test_what_is_no_beginning_of_a_request_comes_in_at_once(place: Place, said: bytes) -> None:
    """It is told that it is none, there."""
    place.hold()
    place.knock(words=False).sendall(said)
    await place.until_taken(waiting=1)


async def test_a_head_that_is_too_long_is_told_so_inside(place: Place) -> None:
    place.hold()
    place.knock(words=False).sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * HEAD_BYTES)
    await place.until_taken(waiting=1)


@pytest.mark.parametrize("place", [DoorLimits(header_secs=0.05)], indirect=True)
async def test_whoever_does_not_come_to_an_end_is_told_so(place: Place) -> None:
    half = place.knock(words=False)
    half.sendall(b"GET / HTTP/1.1\r\nHost: ")
    answer = await asyncio.to_thread(half.recv, 1 << 16)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"too_slow" in answer
    assert not place.porch._silent


async def test_whoever_comes_to_an_end_when_it_is_to_go_is_let_in(place: Place) -> None:
    late = place.knock(words=False)
    await place.until_taken(silent=1)
    ((peer, line),) = place.porch._silent.items()
    late.sendall(b"GET /late HTTP/1.1\r\n\r\n")
    place.porch._send_away(next(iter(line)), peer)
    await place.until(1)
    assert place.came == ["/late"]


async def test_a_porch_that_closes_calls_nobody_slow(place: Place) -> None:
    """Whoever is not answered at all may ask again; 408 was said to good requests when a server stopped."""
    late = place.knock(words=False)
    await place.until_taken(silent=1)
    late.sendall(b"GET /late HTTP/1.1\r\n\r\n")
    place.porch.close()
    await place.until_closed(late)


async def test_whoever_says_half_and_then_no_more_is_sent_away(place: Place) -> None:
    half = place.knock(words=False)
    half.sendall(b"GET / HTTP/1.1\r\n")
    await place.until_taken(silent=1)
    half.shutdown(socket.SHUT_WR)
    await place.until_closed(half)
    assert not place.porch._silent


async def test_a_known_app_passes_a_crowd_of_strangers(place: Place) -> None:
    for _ in range(200):
        place.knock("/stranger", "guessed")
    place.knock("/quiet", GOOD)
    await place.until(201)
    assert place.came.index("/quiet") < 200 - AT_ONCE, "it was the last to connect"


async def test_whoever_is_gone_is_not_let_in(place: Place) -> None:
    for _ in range(3):
        hang_up(place.knock("/gone"))
    place.knock("/here")
    await place.until(1)
    assert place.came == ["/here"]


async def test_whoever_goes_while_it_waits_is_not_let_in(place: Place) -> None:
    gate = place.hold()
    leaving, staying = place.knock("/leaving"), place.knock("/staying")
    await place.until_taken(waiting=2)
    hang_up(leaving)
    gate.set()
    await place.until(1)
    assert place.came == ["/staying"]
    staying.close()


async def test_whoever_only_ended_what_it_sends_is_let_in(place: Place) -> None:
    """It may still wait for the answer."""
    place.knock("/ended").shutdown(socket.SHUT_WR)
    await place.until(1)


async def test_whoever_hangs_up_without_a_word_is_forgotten(place: Place) -> None:
    place.knock(words=False).close()
    place.knock("/here")
    await place.until(1)
    assert not place.porch._silent


@pytest.mark.parametrize("place", [DoorLimits(header_secs=0.05)], indirect=True)
async def test_whoever_says_nothing_is_sent_away(place: Place) -> None:
    await place.until_closed(place.knock(words=False))
    assert not place.porch._silent


@pytest.mark.parametrize("place", [DoorLimits(connections=16)], indirect=True)
async def test_a_crowd_of_one_app_pushes_out_its_own(place: Place) -> None:
    gate = place.hold()
    place.knock("/quiet", GOOD)
    clients = [place.knock("/stranger") for _ in range(10)]
    for client in clients[:7]:
        await place.until_closed(client)
    gate.set()
    await place.until(4)
    assert sorted(place.came) == ["/quiet", *["/stranger"] * 3]


@pytest.mark.parametrize("place", [DoorLimits(connections=16)], indirect=True)
@pytest.mark.parametrize("words", [True, False])
async def test_where_there_is_no_room_the_oldest_leave(place: Place, words: bool) -> None:
    gate = place.hold()
    clients = [place.knock(f"/{number}", words=words) for number in range(5)]
    await place.until_closed(clients[0])
    gate.set()
    if not words:
        for client in clients[1:]:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
    await place.until(4)


@pytest.mark.parametrize("place", [DoorLimits(connections=16)], indirect=True)
async def test_a_silent_crowd_of_one_address_pushes_out_its_own(place: Place) -> None:
    slow = place.knock(words=False, source="127.0.0.2")
    await place.until_taken(silent=1)
    for client in [place.knock(words=False) for _ in range(10)][:7]:
        await place.until_closed(client)
    slow.sendall(b"GET /slow HTTP/1.1\r\n\r\n")
    await place.until(1)
    assert place.came == ["/slow"]


@pytest.mark.parametrize("place", [DoorLimits(connections=16, silent=16)], indirect=True)
async def test_a_silent_crowd_is_sent_away_a_few_at_a_time(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those who are sent away come again at once; what they cost is bounded by the pace at which they go."""
    monkeypatch.setattr("clawdforge.http.connections.porch.SWEEP_SECS", 1000.0)
    crowd = [place.knock(words=False) for _ in range(16)]
    await place.until_taken(silent=16)
    place.knock(words=False)
    await place.until_closed(crowd[0])
    assert count(place.porch._silent) == 16, "for a while there may be more, but not without an end"
    monkeypatch.setattr("clawdforge.http.connections.porch.TAKE_SECS", -1.0)
    place.porch._tidy_up()
    assert count(place.porch._silent) == 16
    monkeypatch.setattr("clawdforge.http.connections.porch.TAKE_SECS", 1000.0)
    place.porch._tidy_up()
    assert count(place.porch._silent) == 4


async def test_a_porch_that_closes_sends_everybody_away(place: Place) -> None:
    place.hold()
    waiting, silent = place.knock("/"), place.knock(words=False)
    await place.until_taken(waiting=1, silent=1)
    place.porch.close()
    await place.until_closed(waiting)
    await place.until_closed(silent)
    assert not place.porch._silent
    assert not place.porch._lines


async def test_without_descriptors_it_says_so_and_comes_again(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("clawdforge.http.connections.porch.NO_ROOM_SECS", 0.01)
    full = OSError(24, "Too many open files")
    real = place.listener
    place.porch._listener = Mock(wraps=real, accept=Mock(side_effect=full), fileno=real.fileno)
    with caplog.at_level(logging.WARNING):
        place.knock("/late")
        await asyncio.sleep(0.05)
    assert "no connection can be taken: Too many open files" in caplog.messages
    assert len(caplog.messages) < 20, "a full table is no reason to turn in circles"
    place.porch._listener = real
    await place.until(1)


async def test_a_closed_porch_is_waited_for(place: Place) -> None:
    """As uvicorn does when it stops."""
    place.hold()
    place.knock("/")
    await place.until_taken(waiting=1)
    place.porch.close()
    await place.porch.wait_closed()
    await asyncio.sleep(0)
    assert not place.porch._lines
