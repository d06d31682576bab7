"""The other form of an event as bytes: joined or made anew, it says the same, and a huge one is quick."""

import gc

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clawdforge.core.models.events import StoredEvent, draft_of
from clawdforge.drivers.acp.updates import read_message
from clawdforge.wire.base import Json
from clawdforge.wire.event import encode_body, number
from clawdforge.wire.event_bytes import LARGE, nest_all, nest_bytes, unnest_bytes
from clawdforge.wire.event_forms import Form, nest, unnest
from tests.agent_messages import messages, updates
from tests.wire_samples import AT, update

CALL = "tool_call_update"


def stored(message: Json) -> StoredEvent:
    event = read_message(message)
    return StoredEvent(7, event.kind.value, 1, number(7, draft_of(event, 1, AT).body))


def check(event: StoredEvent) -> None:
    old = orjson.dumps(nest(orjson.loads(event.data)))
    made = nest_bytes(event.type, event.data)
    assert orjson.loads(made) == orjson.loads(old)
    assert list(orjson.loads(made)) == list(orjson.loads(old))
    assert orjson.loads(unnest_bytes(made)) == unnest(orjson.loads(made))


@given(messages)
@example(update(CALL, {"update": {"a": 1}, "x": 1}))
@example(update(CALL, {"sessionId": "other", "x": 1}))
@example(update(CALL, {"x": ',"update":{"sessionId":'}))
@example(update("plan", {}))
def test_joining_says_what_converting_says(message: Json) -> None:
    check(stored(message))


@given(updates)
@example({})
@example({"a": 1})
def test_the_same_for_updates_in_the_usual_envelope(sent: Json) -> None:
    for session_id in ("a", 'a","update":{"', "\\", "ü"):
        params = {"sessionId": session_id, "update": sent}
        check(stored({"jsonrpc": "2.0", "method": "session/update", "params": params}))


@pytest.mark.parametrize(
    "line",
    [
        b'{"seq":1,"ts":"t","turn":1,"type":"plan","agent_session_id":"a","update":{}}',
        b'{"seq":1,"ts":"t","turn":1,"type":"plan","agent_session_id":"a","update":{"a":1} }',
        b'{"seq":1, "ts":"t","turn":1,"type":"plan","agent_session_id":"a","update":{"a":1}}',
        b'{"seq":1,"ts":"t","turn":1,"type":"plan","message":{"params":{"b":2}},"update":{"a":1}}',
        b'{"seq":1,"ts":"t","turn":null,"type":"plan","agent_session_id":"a","update":{"a":{"update":1}}}',
    ],
)
def test_what_is_written_otherwise_is_converted(line: bytes) -> None:
    assert nest_bytes("plan", line) == orjson.dumps(nest(orjson.loads(line)))


def test_an_update_is_nested_without_being_decoded() -> None:
    """It may be huge: 30 MiB of tiny lists take eight seconds to decode. Here, what cannot be decoded."""
    head = stored(update(CALL, {"toolCallId": "t", "rawOutput": None})).data
    event = StoredEvent(7, "tool_update", 1, head.replace(b"null", b"!not json!"))
    assert event.in_form(Form.NESTED).count(b"!not json!") == 2


def test_the_collector_rests_while_a_large_event_is_converted_and_goes_on_after_it() -> None:
    message = update(CALL, {"update": 1, "rawOutput": [[] for _ in range(LARGE)]})
    event = stored(message)
    collected: list[str] = []
    gc.callbacks.append(lambda phase, _info: collected.append(phase))
    try:
        made = event.in_form(Form.NESTED)
        during = list(collected)
    finally:
        gc.callbacks.pop()
    assert during == []
    assert gc.isenabled()
    assert orjson.loads(made)["params"]["update"] == message["params"]["update"]


@given(st.lists(st.tuples(st.sampled_from(["text", "thinking", "tool_update"]), st.text(max_size=20))))
def test_many_are_nested_as_each_is_by_itself(said: list[tuple[str, str]]) -> None:
    pairs = []
    for seq, (kind, text) in enumerate(said, 9):
        fields: Json = {"agent_session_id": "s", "content": text}
        if kind == "tool_update" or text.startswith("0"):
            fields = {
                "agent_session_id": text,
                "update": {"content": text, "x": ',"content":"'},
                "content": text,
            }
        pairs.append((kind, number(seq, encode_body(kind, seq // 12, AT, fields))))
    assert nest_all(pairs) == [nest_bytes(kind, data) for kind, data in pairs]
