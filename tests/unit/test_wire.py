"""Properties of the wire that hold for any input, not only for the samples."""

from datetime import UTC, datetime
from typing import Any, get_args

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from clawdforge.drivers.acp.updates import read_message
from clawdforge.wire.base import (
    Json,
    Reply,
    Request,
    StrictRequest,
    from_iso,
    to_float,
    to_iso,
    to_iso_seconds,
    to_seconds,
)
from clawdforge.wire.error_body import ErrorBody, error_body
from clawdforge.wire.error_codes import ErrorCode
from clawdforge.wire.event import (
    AGENT_TYPES,
    RESERVED,
    Event,
    EventType,
    encode_body,
    number,
)
from clawdforge.wire.message import estimate_tokens
from clawdforge.wire.session import CreateSession, PermissionMode
from clawdforge.wire.turn import MOVES, TurnRequest, TurnState
from tests.agent_messages import messages, objects, texts, values
from tests.wire_samples import as_event, models, received

moments = st.integers(0, 253_402_300_799_999_999)


@given(messages, st.integers(1, 2**53), st.none() | st.integers(1, 2**31), moments)
def test_an_agent_cannot_set_what_the_server_sets(message: Json, seq: int, turn: int | None, at: int) -> None:
    kind, fields = read_message(message)
    line = number(seq, encode_body(kind.value, turn, at, fields))
    assert b"\n" not in line
    event = orjson.loads(line)
    assert (event["seq"], event["ts"], event["turn"], event["type"]) == (seq, to_iso(at), turn, kind.value)
    assert list(event)[:4] == ["seq", "ts", "turn", "type"]
    for key, value in fields.items():
        assert key in RESERVED or event[key] == value


@given(objects, st.integers(1, 2**53), moments)
def test_an_event_reads_back_with_all_its_keys(fields: Json, seq: int, at: int) -> None:
    line = number(seq, encode_body("other", 1, at, fields))
    event = Event.model_validate_json(line)
    assert event.model_dump() | {"content": event.content} == {"content": None, **orjson.loads(line)}


@given(moments)
def test_times_go_there_and_back(at: int) -> None:
    text = to_iso(at)
    assert from_iso(text) == at
    assert len(text) == len("2026-11-15T09:30:00.123456Z")
    assert to_seconds(at) == at // 1_000_000
    assert to_iso_seconds(at) == text[:19] + "Z"


@given(st.lists(moments, min_size=2, max_size=2))
def test_iso_text_sorts_like_the_times(pair: list[int]) -> None:
    assert sorted(pair) == [from_iso(text) for text in sorted(to_iso(at) for at in pair)]


def test_times_without_a_zone_are_read_as_utc() -> None:
    assert from_iso("2026-11-15T09:30:00") == from_iso("2026-11-15T10:30:00+01:00")
    moment = datetime(2026, 11, 15, 9, 30, tzinfo=UTC)
    assert to_float(from_iso("2026-11-15T09:30:00Z")) == moment.timestamp()


@pytest.mark.parametrize("none", [to_seconds, to_float, to_iso_seconds])
def test_no_time_is_no_time(none: Any) -> None:
    assert none(None) is None


MODELS = models()


@pytest.mark.parametrize("model", [m for m in MODELS if issubclass(m, Reply)], ids=lambda m: m.__name__)
def test_replies_keep_fields_of_a_newer_server(model: type[BaseModel]) -> None:
    assert model.model_config["extra"] == "allow"
    assert model.model_config["frozen"]


@pytest.mark.parametrize("model", [m for m in MODELS if issubclass(m, Request)], ids=lambda m: m.__name__)
def test_requests_ignore_fields_they_do_not_know(model: type[BaseModel]) -> None:
    assert model.model_config["extra"] == "ignore"
    assert model.model_config["frozen"]


def test_every_model_is_a_request_or_a_reply() -> None:
    assert [m.__name__ for m in MODELS if not issubclass(m, Request | StrictRequest | Reply)] == []


def test_unknown_fields_are_ignored_or_kept() -> None:
    assert CreateSession.model_validate({"agent": "demo", "from_2040": 1}) == CreateSession(agent="demo")
    event = Event.model_validate({"seq": 1, "ts": "t", "type": "from.2040", "shade": "blue"})
    assert event.model_dump()["shade"] == "blue"


BAD_TURNS: list[Json] = [
    {},
    {"prompt": ""},
    {"prompt": None},
    {"prompt": 5},
    {"prompt": "x", "timeout_secs": 0},
    {"prompt": "x", "timeout_secs": -1},
    {"prompt": "x", "timeout_secs": float("nan")},
    {"prompt": "x", "timeout_secs": float("inf")},
    {"prompt": "x", "if_busy": "panic"},
    {"prompt": "x", "files": "ff_1"},
    {"prompt": "x", "files": [""]},
    {"prompt": "x", "expected_head": -1},
]


@pytest.mark.parametrize("body", BAD_TURNS, ids=str)
def test_a_bad_turn_request_is_refused(body: Json) -> None:
    with pytest.raises(ValidationError):
        TurnRequest.model_validate(body)


@given(st.dictionaries(st.sampled_from(sorted(CreateSession.model_fields)), values, max_size=4))
def test_any_body_is_a_session_or_a_validation_error(body: Json) -> None:
    try:
        request = CreateSession.model_validate(body)
    except ValidationError:
        return
    assert request.permission_mode is None or request.permission_mode in PermissionMode


@given(st.sampled_from(list(ErrorCode)), texts)
def test_an_error_says_the_same_in_both_places(code: ErrorCode, words: str) -> None:
    body = ErrorBody.model_validate(error_body(code, words, {"hint": 1}))
    assert (body.ok, body.error, body.detail, body.code) == (False, words, words, code.value)
    assert get_args(ErrorBody.model_fields["ok"].annotation) == (False,)


@given(st.text())
def test_an_estimate_is_never_negative_and_grows(text: str) -> None:
    tokens = estimate_tokens(text)
    assert (tokens == 0) == (text == "")
    assert estimate_tokens(text + text) >= tokens


def test_a_turn_ends_once_and_from_everywhere() -> None:
    assert MOVES[TurnState.ENDED] == frozenset()
    assert all(TurnState.ENDED in MOVES[state] for state in TurnState if state is not TurnState.ENDED)
    assert set(MOVES) == set(TurnState)


def test_agent_types_have_no_dot() -> None:
    for kind in EventType:
        assert (kind in AGENT_TYPES) == ("." not in kind.value)


def test_streamed_text_is_read_in_one_place_only() -> None:
    for name, message in received():
        event = Event.model_validate(as_event(message))
        assert event.text == ("" if not isinstance(event.content, str) else event.content), name
