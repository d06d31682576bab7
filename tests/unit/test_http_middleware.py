"""The outermost layer: a defect is a 500 in the one shape, and an answer that broke off is seen to."""

import asyncio
import logging
from unittest.mock import Mock

import orjson
import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clawdforge.core.pacing.loop_turns import LoopTurns
from clawdforge.http.access.guard import Guard
from clawdforge.http.connections.connection import KEY, Connection
from clawdforge.http.connections.lanes import Lanes
from clawdforge.http.middleware import BodyLimit, Envelope
from clawdforge.wire.errors import BodyTooLarge

START: Message = {"type": "http.response.start", "status": 200, "headers": []}


class Exchange:
    """One request to an ASGI object, with its body in pieces, and what came back."""

    def __init__(self, *pieces: bytes, length: int | None = None) -> None:
        self._pieces = list(pieces)
        self.sent: list[Message] = []
        declared = [] if length is None else [(b"content-length", b"%d" % length)]
        self.scope: Scope = {
            "type": "http",
            "method": "POST",
            "path": "/x",
            "headers": [(b"host", b"localhost"), *declared],
        }

    async def receive(self) -> Message:
        return {"type": "http.request", "body": self._pieces.pop(0), "more_body": bool(self._pieces)}

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    async def run(self, asgi: ASGIApp) -> None:
        await asgi(self.scope, self.receive, self.send)


def envelope(asgi: ASGIApp) -> Envelope:
    return Envelope(asgi, Guard("127.0.0.1", ()), Lanes(Mock(loop_turns=LoopTurns())), asyncio.Event())


async def test_a_defect_is_500_without_its_insides_and_the_log_has_the_id(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def broken(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise RuntimeError("secret path /etc/x")

    exchange = Exchange()
    with caplog.at_level(logging.ERROR):
        await exchange.run(envelope(broken))
    start, body = exchange.sent
    headers = dict(start["headers"])
    assert start["status"] == 500
    assert orjson.loads(body["body"])["code"] == "internal"
    assert b"secret" not in body["body"]
    assert headers[b"x-request-id"].decode() in caplog.text
    assert "secret path" in caplog.text


async def test_an_answer_that_breaks_off_is_not_made_to_look_whole() -> None:
    async def half(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send(START)
        await send({"type": "http.response.body", "body": b"{", "more_body": True})
        raise RuntimeError

    exchange = Exchange()
    with pytest.raises(RuntimeError):
        await exchange.run(envelope(half))
    assert [message.get("more_body") for message in exchange.sent] == [None, True]


@pytest.mark.parametrize(
    ("pieces", "length", "fits"),
    [((b"12345", b"67890"), None, True), ((b"12345", b"678901"), None, False), ((b"1",), 11, False)],
)
async def test_a_body_is_counted_as_it_is_read(
    pieces: tuple[bytes, ...], length: int | None, fits: bool
) -> None:
    async def read(_scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive())["more_body"]:
            pass
        await send(START)

    exchange = Exchange(*pieces, length=length)
    if fits:
        await exchange.run(BodyLimit(read, 10, 10, ()))
        assert exchange.sent == [START]
    else:
        with pytest.raises(BodyTooLarge):
            await exchange.run(BodyLimit(read, 10, 10, ()))


async def test_a_request_whose_caller_hung_up_while_it_waited_is_not_begun() -> None:
    async def begin(_scope: Scope, _receive: Receive, _send: Send) -> None:
        pytest.fail("nobody waits for it")

    exchange = Exchange()
    exchange.scope["state"] = {KEY: Mock(spec=Connection, is_unix=False, is_gone=True)}
    await exchange.run(envelope(begin))
    assert exchange.sent == []
