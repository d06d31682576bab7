"""The compact and the nested form of an agent's event: each is made from the other, whatever was sent."""

import copy

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clawdforge.core.models.events import StoredEvent, draft_of
from clawdforge.drivers.acp.updates import UPDATE_TYPES, read_message
from clawdforge.wire.base import Json
from clawdforge.wire.event import RESERVED, EventType, encode_body, number
from clawdforge.wire.event_forms import Form, nest, unnest, update_of
from tests.agent_messages import SPOKEN, blocks, flatten, kinds, messages, objects, updates
from tests.wire_samples import AT, OWN, as_compact, own_event, received, update

TOP = {"seq": 7, "ts": "2026-11-15T09:30:00.123456Z", "turn": 1}
LONG = "These words are long enough to be looked for. "


def as_json(value: object) -> bytes:
    """Equal for what is equal on the wire: the order of keys does not count, 1 and true differ."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def compact(message: Json) -> Json:
    kind, fields = read_message(message)
    found: Json = orjson.loads(number(7, encode_body(kind.value, 1, AT, fields)))
    return found


def nested(message: Json) -> Json:
    """As version 0.3 stored it."""
    kind, fields = flatten(message)
    return {**TOP, "type": kind.value, **fields}


@given(messages)
def test_the_nested_form_is_what_it_always_was(message: Json) -> None:
    before = copy.deepcopy(message)
    assert as_json(nest(compact(message))) == as_json(nested(message))
    assert message == before


@given(messages)
@example({"id": 1, "result": {}, "params": {"a": 1, "update": {"a": 1}}})
def test_an_event_that_was_stored_nested_can_be_read_in_both_forms(message: Json) -> None:
    old = nested(message)
    assert as_json(nest(unnest(old))) == as_json(old)


@given(st.sampled_from([message for _, message in received()]))
def test_the_compact_form_of_an_old_event_is_that_of_a_new_one(message: Json) -> None:
    assert unnest(nested(message)) == compact(message)


@given(kinds, objects, blocks)
def test_an_update_can_be_read_at_every_depth(word: str, fields: Json, block: object) -> None:
    """X-01."""
    sent = {**fields, "content": block, "sessionUpdate": word}
    event = nest(compact(update(word, sent)))
    assert event["params"]["update"] == sent
    assert event["type"] == UPDATE_TYPES.get(word, EventType.OTHER)
    for key, value in sent.items():
        assert key in ("sessionId", "update") or event["params"][key] == value
    if event["type"] in SPOKEN:
        assert isinstance(event["content"], str)
    if event["type"] == EventType.TOOL_CALL:
        assert isinstance(event["name"], str)
        assert event["name"]


@given(messages)
def test_a_compact_event_has_only_keys_of_ours(message: Json) -> None:
    ours = {
        *RESERVED,
        "agent_session_id",
        "message",
        "update",
        "content",
        "name",
        "args",
        "id",
        "result",
        "error",
    }
    assert compact(message).keys() <= ours


@given(updates)
def test_what_an_update_says_is_read_from_both_forms(sent: Json) -> None:
    event = compact(
        {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "a", "update": sent}}
    )
    if event["type"] in SPOKEN:
        return
    old = nest(event)
    assert update_of(event["type"], event) == sent
    for key, value in sent.items():
        assert key in ("sessionId", "update") or update_of(old["type"], old)[key] == value


@pytest.mark.parametrize("more", [{}, {"messageId": "m1"}, {"_meta": {"a": 1}}])
@pytest.mark.parametrize("block", [{"type": "text"}, {"type": "text", "annotations": {"a": 1}}, {}])
@pytest.mark.parametrize("word", ["agent_message_chunk", "agent_thought_chunk", "user_message_chunk"])
def test_words_are_held_once(word: str, block: Json, more: Json) -> None:
    message = update(word, {"content": {**block, "text": LONG}, **more})
    for odd in (message, {**message, "id": 4}, {"method": "session/update", "params": message["params"]}):
        assert orjson.dumps(compact(odd)).count(LONG.encode()) == 1


def test_name_and_input_of_a_tool_call_are_held_once() -> None:
    fields = {"toolCallId": "t1", "title": "Write all of it", "kind": "edit", "rawInput": {"text": LONG}}
    line = orjson.dumps(compact(update("tool_call", fields)))
    assert (line.count(LONG.encode()), line.count(b"Write all of it")) == (1, 1)


def test_a_usual_chunk_is_stored_in_few_bytes() -> None:
    event = as_compact(update("agent_message_chunk", {"content": {"type": "text", "text": "Hello"}}))
    assert list(event) == ["seq", "ts", "turn", "type", "agent_session_id", "content"]


@pytest.mark.parametrize("kind", OWN)
def test_events_of_the_server_have_one_form(kind: EventType) -> None:
    event = own_event(kind)
    assert nest(event) == unnest(event) == event


def test_the_other_form_is_made_once_for_all_readers_and_not_at_all_for_those_who_want_this_one() -> None:
    body = draft_of(read_message(update("plan", {"entries": []})), 1, AT).body
    event = StoredEvent(5, "plan", 1, number(5, body))
    assert event.in_form(Form.COMPACT) is event.data
    assert event.in_form(Form.NESTED) is event.in_form(Form.NESTED)
    old = StoredEvent(5, "plan", 1, event.in_form(Form.NESTED), Form.NESTED)
    assert old.in_form(Form.NESTED) is old.data
    assert old.in_form(Form.COMPACT) == event.data


def test_what_an_agent_puts_in_the_place_of_a_name_is_written_out_only_if_it_is_short() -> None:
    def name_of(title: object) -> object:
        sent = {"sessionUpdate": "tool_call", "toolCallId": "t1", "title": title}
        message = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": sent}}
        return compact(message)["name"]

    assert name_of(LONG * 1000) == LONG * 1000
    assert name_of(["a", 1]) == "['a', 1]"
    assert name_of(["a"] * 100_000) == "(list)"
