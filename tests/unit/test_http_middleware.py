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
from clawdforge.http.middleware import Envelope, make_ids

START: Message = {"type": "http.response.start", "status": 200, "headers": []}


class Exchange:
    """One request to an ASGI object, and what came back."""

    def __init__(self) -> None:
        self.sent: list[Message] = []
        headers = [(b"host", b"localhost")]
        self.scope: Scope = {"type": "http", "method": "POST", "path": "/x", "headers": headers}

    async def receive(self) -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

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


async def test_a_request_whose_caller_hung_up_while_it_waited_is_not_begun() -> None:
    async def begin(_scope: Scope, _receive: Receive, _send: Send) -> None:
        pytest.fail("nobody waits for it")

    exchange = Exchange()
    exchange.scope["state"] = {KEY: Mock(spec=Connection, is_unix=False, is_gone=True)}
    await exchange.run(envelope(begin))
    assert exchange.sent == []


async def test_an_answer_keeps_its_own_word_over_the_usual_one() -> None:
    async def page(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({**START, "headers": [(b"cache-control", b"no-cache"), (b"x-own", b"1")]})

    exchange = Exchange()
    exchange.scope["state"] = {"dialect": "hermes"}
    await exchange.run(envelope(page))
    headers = exchange.sent[0]["headers"]
    assert [value for name, value in headers if name == b"cache-control"] == [b"no-cache"]
    assert [value for name, value in headers if name == b"referrer-policy"] == [b"same-origin"]
    assert {b"x-own", b"x-frame-options", b"x-content-type-options", b"x-request-id"} <= dict(headers).keys()
    assert len(headers) == len(dict(headers))


def test_no_two_requests_have_one_id() -> None:
    ids = make_ids()
    some = [next(ids) for _ in range(300)]
    assert len(set(some)) == 300
    assert {len(bytes.fromhex(one)) for one in some} == {8}
