"""An answer is framed as HTTP wants it; its head goes out with its body, and waits for none that is late."""

import asyncio
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from clawdforge.http.connections.exchange import LARGE_BYTES, Exchange

DATE = (b"date", b"today")
HEAD = b"HTTP/1.1 200 OK\r\ndate: today\r\n"
OPEN = {"type": "http.response.body", "body": b"", "more_body": True}


class Wire:
    """A connection that keeps what each write was."""

    def __init__(self) -> None:
        self.said: list[bytes] = []
        self.done = 0
        self.transport: Any = self
        self.flow: Any = SimpleNamespace(write_paused=False, read_paused=False)
        self.loop = asyncio.get_running_loop()
        self.logger: Any = Mock()
        self.server_state: Any = SimpleNamespace(default_headers=[DATE])

    def write(self, data: bytes) -> None:
        self.said.append(data)

    def close(self) -> None:
        self.said.append(b"closed")

    def is_closing(self) -> bool:
        return b"closed" in self.said

    def on_response_complete(self) -> None:
        self.done += 1

    def begin(self, method: str = "GET", *, keep_alive: bool = True, expects: bool = False) -> Exchange:
        return Exchange(self, {"method": method}, keep_alive=keep_alive, expects_continue=expects)


def start(*headers: tuple[bytes, bytes], status: int = 200) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": [*headers]}


def length(size: int) -> tuple[bytes, bytes]:
    return b"content-length", b"%d" % size


def body(data: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": data, "more_body": more}


async def test_a_whole_answer_is_one_write() -> None:
    wire = Wire()
    exchange = wire.begin()
    await exchange.send(start(length(4)))
    await exchange.send(body(b"body"))
    assert wire.said == [HEAD + b"content-length: 4\r\n\r\nbody"]
    assert (exchange.response_complete, wire.done) == (True, 1)
    with pytest.raises(RuntimeError, match="cannot go on"):
        await exchange.send(body(b"more"))


async def test_a_stream_goes_out_in_chunks_and_its_head_in_the_next_pass() -> None:
    wire = Wire()
    exchange = wire.begin()
    await exchange.send(start())
    assert wire.said == []
    await asyncio.sleep(0)
    chunked = HEAD + b"transfer-encoding: chunked\r\n\r\n"
    assert wire.said == [chunked]
    for piece in (b"late", b""):
        await exchange.send(body(piece, more=True))
    await exchange.send(body(b"end"))
    assert b"".join(wire.said[1:]) == b"4\r\nlate\r\n3\r\nend\r\n0\r\n\r\n"


async def test_the_first_chunk_that_is_there_goes_with_the_head() -> None:
    wire = Wire()
    exchange = wire.begin()
    await exchange.send(start())
    await exchange.send(body(b"now", more=True))
    await asyncio.sleep(0)
    assert wire.said == [HEAD + b"transfer-encoding: chunked\r\n\r\n3\r\nnow\r\n"]


async def test_an_old_client_gets_no_chunks() -> None:
    """HTTP/1.0 knows none: the end of the connection is that of the body."""
    wire = Wire()
    scope = {"method": "GET", "http_version": "1.0"}
    exchange = Exchange(wire, scope, keep_alive=False, expects_continue=False)
    await exchange.send(start())
    await exchange.send(body(b"late", more=True))
    await exchange.send(body(b""))
    assert b"".join(wire.said) == HEAD + b"connection: close\r\n\r\n" + b"lateclosed"


@pytest.mark.parametrize(("size", "writes"), [(LARGE_BYTES, 1), (LARGE_BYTES + 1, 2)])
async def test_a_large_body_is_not_copied(size: int, writes: int) -> None:
    wire = Wire()
    exchange = wire.begin()
    await exchange.send(start(length(size)))
    await exchange.send(body(b"x" * size))
    assert len(wire.said) == writes
    assert b"".join(wire.said).endswith(b"\r\n\r\n" + b"x" * size)


@pytest.mark.parametrize("said", [b"", b"body"])
async def test_the_answer_to_head_has_no_body(said: bytes) -> None:
    wire = Wire()
    exchange = wire.begin("HEAD")
    await exchange.send(start(length(4)))
    await exchange.send(body(said))
    assert (wire.said, wire.done) == ([HEAD + b"content-length: 4\r\n\r\n"], 1)


@pytest.mark.parametrize(("status", "line"), [(204, b"204 No Content"), (304, b"304 Not Modified")])
async def test_an_answer_that_may_have_no_body_has_none(status: int, line: bytes) -> None:
    wire = Wire()
    exchange = wire.begin()
    await exchange.send(start(status=status))
    await exchange.send(body(b""))
    assert wire.said == [b"HTTP/1.1 " + line + b"\r\ndate: today\r\n\r\n"]


@pytest.mark.parametrize("data", [b"abcde", b"abc"])
async def test_a_body_is_as_long_as_was_said(data: bytes) -> None:
    wire = Wire()
    exchange = wire.begin()
    await exchange.send(start(length(4)))
    with pytest.raises(RuntimeError, match="than it was to be"):
        await exchange.send(body(data))
    assert not exchange.response_complete


@pytest.mark.parametrize(
    ("keep_alive", "headers", "line"),
    [
        (False, [], b"connection: close\r\n"),
        (True, [(b"connection", b"x, Close")], b"connection: x, Close\r\n"),
    ],
)
async def test_the_last_answer_says_so_and_ends_the_connection(
    keep_alive: bool, headers: list[tuple[bytes, bytes]], line: bytes
) -> None:
    wire = Wire()
    exchange = wire.begin(keep_alive=keep_alive)
    await exchange.send(start(length(0), *headers))
    await exchange.send(body(b""))
    assert wire.said == [HEAD + b"content-length: 0\r\n" + line + b"\r\n", b"closed"]


@pytest.mark.parametrize(
    "header", [(b"x-a", b"b\r\nx-c: d"), (b"x-a\r\n", b"b"), (b"x-a", b"\x00"), (b"x a", b"b")]
)
async def test_no_header_makes_another(header: tuple[bytes, bytes]) -> None:
    wire = Wire()
    with pytest.raises(RuntimeError, match="that it must not have"):
        await wire.begin().send(start(header))
    assert wire.said == []


async def test_an_answer_that_breaks_off_takes_no_head_with_it() -> None:
    wire = Wire()

    async def half(_scope: Any, _receive: Any, send: Any) -> None:
        await send(start(length(4)))
        raise RuntimeError

    await wire.begin().run_asgi(half)
    assert wire.said == [HEAD + b"content-length: 4\r\n\r\n", b"closed"]


async def test_a_body_is_heard_in_pieces_and_then_the_end_of_the_connection() -> None:
    wire = Wire()
    exchange = wire.begin("POST", expects=True)
    first = asyncio.ensure_future(exchange.receive())
    await asyncio.sleep(0)
    assert (wire.said, first.done()) == ([b"HTTP/1.1 100 Continue\r\n\r\n"], False)
    exchange.body += b"one"
    exchange.notice()
    assert await first == {"type": "http.request", "body": b"one", "more_body": True}
    exchange.body += b"two"
    exchange.notice()
    exchange.more_body = False
    exchange.notice()
    assert await exchange.receive() == {"type": "http.request", "body": b"two", "more_body": False}
    both = [asyncio.ensure_future(exchange.receive()) for _ in range(2)]
    await asyncio.sleep(0)
    assert not any(one.done() for one in both)
    exchange.disconnected = True
    exchange.notice()
    assert await asyncio.gather(*both) == [{"type": "http.disconnect"}] * 2
    assert await exchange.receive() == {"type": "http.disconnect"}


async def test_nothing_is_sent_to_a_client_that_has_gone() -> None:
    wire = Wire()
    exchange = wire.begin()
    exchange.disconnected = True
    await exchange.send(start())
    assert wire.said == []
