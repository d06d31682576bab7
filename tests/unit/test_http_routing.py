"""What a body may be, and which routes there may be."""

import asyncio
import json
import threading
from contextlib import ExitStack
from types import SimpleNamespace
from unittest.mock import Mock

import orjson
import pytest
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Message, Receive, Scope, Send

from clawdforge.core.pacing.loop_turns import LoopTurns
from clawdforge.http.access.guard import Guard
from clawdforge.http.app import join_routes
from clawdforge.http.connections.lanes import Lanes
from clawdforge.http.middleware import Envelope
from clawdforge.http.requests.deadlines import Deadlines
from clawdforge.http.requests.json_bodies import FEW_VALUES, MANY_VALUES, parse_body
from clawdforge.http.requests.parameters import Taken
from clawdforge.http.routers import Router
from clawdforge.http.routing import AppRoute, OpenRoute, UntilSent, has_own_limit
from clawdforge.wire.base import Reply
from clawdforge.wire.errors import BodyTooLarge, InvalidJson, InvalidRequest
from clawdforge.wire.turn import TurnRequest


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":"\\ud800"}',
        b'{"a":"\xff"}',
        b"[" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 250 + b"1" + b"}" * 250,
        b"\x00",
        b"\xef\xbb\xbf{}",
    ],
    ids=lambda raw: repr(raw[:12]),
)
def test_what_is_not_json_or_cannot_be_written_again_is_refused(raw: bytes) -> None:
    with pytest.raises(InvalidJson):
        parse_body(raw, FEW_VALUES)


def test_what_is_accepted_can_be_written_inside_an_answer() -> None:
    for levels in range(1, 400):
        try:
            value = parse_body(b"[" * levels + b"]" * levels, FEW_VALUES)
        except InvalidJson:
            assert levels > 100
            continue
        assert orjson.dumps({"ok": True, "sessions": [{"meta": {"deep": value}}]})


def test_strings_with_brackets_are_not_nesting() -> None:
    text = "[{" * 5000
    assert parse_body(orjson.dumps({"prompt": text}), FEW_VALUES) == {"prompt": text}


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**300])
@pytest.mark.parametrize("body", ['{"meta":{"n":%d}}', '{"meta":[1.5,[{"n": %d }]]}', "%d"])
def test_an_integer_that_would_become_another_number_is_refused(body: str, number: int) -> None:
    with pytest.raises(InvalidRequest, match="send it as text"):
        parse_body((body % number).encode(), FEW_VALUES)


@pytest.mark.parametrize("number", [2**64 - 1, -(2**63), 1e300, -1.5e19, 18446744073709551616.0])
def test_numbers_that_stay_what_they_are(number: float) -> None:
    text = f"digits in a text are no number: {2**70}, {2**64}"
    body = {"n": number, text: [text, str(2**64)]}
    assert parse_body(json.dumps(body).encode(), FEW_VALUES) == body


async def _handler() -> None:
    raise NotImplementedError


def test_two_routes_of_one_method_and_path_are_refused() -> None:
    one, two = Router(AppRoute), Router(OpenRoute)
    one.get("/sessions/{session_id}")(_handler)
    two.get("/sessions/{session_id}")(_handler)
    with pytest.raises(ValueError, match="two routes claim GET"):
        list(join_routes([one, two]))


async def _take(body: TurnRequest) -> Response:
    raise NotImplementedError


def test_nothing_is_found_out_about_a_handler_before_it_is_called() -> None:
    asked = []

    class Watched(OpenRoute):
        def plan(self) -> Taken:
            asked.append(self.path)
            return super().plan()

    router = Router(Watched)
    router.post("/turns", response_model=Reply)(_take)
    (route,) = join_routes([router])
    assert (route.path_format, set(route.methods), asked) == ("/turns", {"POST"}, [])
    assert route.handler is route.handler
    assert asked == ["/turns"]


@has_own_limit
async def _answer() -> Response:
    return Response(b"yes")


async def test_what_a_route_takes_is_not_found_out_in_the_event_loop() -> None:
    """It takes up to a tenth of a second of the processor, for which everybody else would wait."""
    threads, sent = [], []

    class Watched(OpenRoute):
        def plan(self) -> Taken:
            threads.append(threading.current_thread())
            return super().plan()

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        raise NotImplementedError

    app = SimpleNamespace(state=SimpleNamespace(planning=threading.Lock()))
    scope = {"type": "http", "method": "GET", "path": "/it", "headers": [], "app": app}
    route = Watched("GET", "/it", _answer)
    for _ in range(2):
        await route.handle(dict(scope), receive, send)
    assert [message["body"] for message in sent if "body" in message] == [b"yes", b"yes"]
    assert len(threads) == 1
    assert threads[0] is not threading.current_thread()


def test_what_a_handler_takes_is_whole_when_it_is_called() -> None:
    """A model that is built with its first body is built in the event loop."""
    route = OpenRoute("POST", "/turns", _take)
    assert callable(route.handler)
    assert TurnRequest.__pydantic_complete__
    body = route.plan().body
    assert body is not None
    assert body.adapter.validate_python({"prompt": "hi"}).prompt == "hi"


@pytest.mark.parametrize(
    ("path", "asked", "found"),
    [
        ("/sessions/{session_id}", "/sessions/abc", {"session_id": "abc"}),
        ("/sessions/{session_id}", "/sessions/import", None),
        ("/sessions/{session_id}", "/sessions/a/b", None),
        ("/sessions/import", "/sessions/import", {}),
        ("/sessions/import", "/sessions/import/", None),
        ("/ui/{path:path}", "/ui/a/b", {"path": "a/b"}),
    ],
)
def test_a_path_that_is_spelled_out_is_no_parameter(
    path: str, asked: str, found: dict[str, str] | None
) -> None:
    route = OpenRoute("GET", path, _handler)
    app = Mock(state=Mock(literal_paths={"/sessions/import"}))
    match, more = route.matches({"type": "http", "method": "GET", "path": asked, "app": app})
    assert (match is Match.FULL) is (found is not None)
    assert more.get("path_params") == found


async def test_what_lasts_until_the_answer_is_sent_lasts_that_long() -> None:
    order: list[str] = []

    async def answer(until_sent: UntilSent) -> Response:
        stack = ExitStack()
        stack.callback(order.append, "left")
        until_sent.enter_context(stack)
        return Response(b"words")

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        state = SimpleNamespace(planning=threading.Lock(), deadlines=Deadlines(60))
        await route.handle({**scope, "app": SimpleNamespace(state=state)}, receive, send)

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    async def send(message: Message) -> None:
        order.append(message["type"])

    route = OpenRoute("GET", "/", answer)
    headers = [(b"host", b"localhost")]
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": headers}
    lanes = Lanes(Mock(loop_turns=LoopTurns()))
    await Envelope(app, Guard("127.0.0.1", ()), lanes, asyncio.Event())(scope, receive, send)
    assert order == ["http.response.start", "http.response.body", "left"]


@pytest.mark.parametrize("most", [FEW_VALUES, MANY_VALUES])
def test_a_body_holds_as_many_values_as_its_route_takes(most: int) -> None:
    """The list itself is one of them, and commas in text are none."""
    fits = b"[" + b"0," * (most - 1) + b'"' + b"," * most + b'"]'
    assert len(parse_body(fits, most)) == most
    with pytest.raises(BodyTooLarge, match=f"{most:,}"):
        parse_body(b"[" + b"0," * most + b"0]", most)
