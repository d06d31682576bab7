"""What the dialects show is pinned by files, and has the keys that the wire says."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from pydantic import BaseModel

from clawdforge.core.models.rows import MessageRow, PermissionRow, SessionRow, TurnRow
from clawdforge.core.rules.sessions import SessionState
from clawdforge.core.rules.transcripts import Ending, Transcript
from clawdforge.core.services.messages import Detail, Summary
from clawdforge.http.dialects.deepagent import shapes as deepagent_shapes
from clawdforge.http.dialects.hermes import frames as hermes_frames
from clawdforge.http.dialects.hermes import shapes as hermes_shapes
from clawdforge.wire.base import Json
from clawdforge.wire.deepagent import MessageInfo, SessionAck, SessionDetail, SessionSummary
from clawdforge.wire.event import EventType
from clawdforge.wire.hermes import HermesSession, HermesStatus, HermesUsage
from clawdforge.wire.turn import Outcome, TurnState
from tests.wire_samples import AT, UPDATES, as_compact

FOLDER = Path(__file__).parent.parent / "golden"
UPDATE = os.environ.get("CLAWDFORGE_TEST_UPDATE_GOLDEN") == "1"
STREAM = "0f0c:7"
TOOL = {"toolCallId": "c1", "title": "grep", "kind": "search", "status": "completed", "rawInput": {"q": "x"}}
ROW = SessionRow(
    app_name="a",
    session_id="0f0c",
    agent="claude",
    cwd="/work",
    created_at=AT,
    updated_at=AT + 1_500_000,
    title="A title",
    model="m1",
    persona="careful",
    labels=("archived",),
    pinned=True,
    plan_mode=True,
    project_key="0123456789abcdef",
    parent_session_id="0f0b",
    depth=1,
    message_count=3,
    total_input_tokens=5,
    total_output_tokens=6,
    input_tokens=50,
    output_tokens=60,
    cost_usd=0.25,
)
SAID = MessageRow(session_id="0f0c", role="user", content="hi", ts=AT, seq=1, turn=6, token_count=1)
ANSWER = MessageRow(
    session_id="0f0c",
    role="assistant",
    content="hello",
    ts=AT + 1,
    seq=2,
    turn=6,
    thinking="hm",
    tool_calls=(TOOL,),
    token_count=3,
)
ASKED = MessageRow(session_id="0f0c", role="user", content="more", ts=AT + 2, seq=3, turn=7, pending=True)
RUNNING = Transcript(SessionState(ROW, 7, 1), ASKED, (SAID, ANSWER), unsaid=1)
ENDED = SessionRow(
    app_name="a", session_id="0f0d", agent="demo", cwd="/w", created_at=AT, updated_at=AT, closed_at=AT
)
RESTING = Transcript(SessionState(ENDED, None, 0), None)
FAILED = TurnRow(
    session_id="0f0c",
    turn_index=6,
    state=TurnState.ENDED,
    prompt="hi",
    queued_at=AT,
    ended_at=AT + 2,
    outcome=Outcome.FAILED,
    error="no such model",
)
CUT_OFF = replace(FAILED, outcome=Outcome.INTERRUPTED, error="the server stopped")
PERMISSION = PermissionRow(
    permission_id="p1",
    session_id="0f0c",
    turn_index=7,
    tool="rm -r build",
    kind="execute",
    request={},
    requested_at=AT,
    options=({"optionId": "a", "kind": "allow_once"},),
)


def event(kind: EventType, /, **fields: Any) -> Json:
    return {"seq": 9, "ts": "", "turn": 7, "type": kind.value, **fields}


def ended(outcome: str, **fields: Any) -> list[Any]:
    found = hermes_frames.parts_of_end(
        event(EventType.TURN_ENDED, outcome=outcome, **fields), hermes_shapes.session(RUNNING, page=False)
    )
    return [[name, {**data, "session": "…"} if "session" in data else data] for name, data in found]


def update(word: str, **fields: Any) -> list[Any]:
    params = {"sessionId": "s", "update": {"sessionUpdate": word, **UPDATES.get(word, {}), **fields}}
    sent = {"jsonrpc": "2.0", "method": "session/update", "params": params}
    return [list(part) for part in hermes_frames.parts_of(as_compact(sent), "0f0c", {"t1": "Read notes.md"})]


SHAPES: dict[str, Any] = {
    "deepagent/ack": deepagent_shapes.ack(ROW, seq=4),
    "deepagent/summary": deepagent_shapes.summary(Summary(ROW, AT)),
    "deepagent/detail": deepagent_shapes.detail(
        Detail(Summary(ENDED, None), (SAID, ANSWER, ASKED), (Summary(ROW, AT),))
    ),
    "deepagent/frame": deepagent_shapes.frame(ANSWER).decode(),
    "hermes/session.running": hermes_shapes.session(RUNNING, page=False),
    "hermes/session.resting": hermes_shapes.session(RESTING, page=False),
    "hermes/ending.failed": hermes_shapes.entry(Ending(2, FAILED)),
    "hermes/ending.interrupted": hermes_shapes.entry(Ending(2, CUT_OFF)),
    "hermes/compact": hermes_shapes.compact(RUNNING, page=False),
    "hermes/status": hermes_shapes.status(RUNNING, page=False),
    "hermes/usage": hermes_shapes.usage(ROW),
    "hermes/approval": hermes_frames.approval_row(PERMISSION),
    "hermes/frames.updates": {word: update(word) for word in UPDATES},
    "hermes/frames.tool_ended": update("tool_call_update", status="failed", title="grep"),
    "hermes/frames.tool_at_once": update("tool_call", status="completed"),
    "hermes/frames.approval": hermes_frames.parts_of(
        event(EventType.PERMISSION_REQUESTED, permission_id="p1", tool="t", kind="edit", options=[]),
        "0f0c",
        {},
    ),
    "hermes/frames.truncated": hermes_frames.parts_of(
        event(EventType.OUTPUT_TRUNCATED, dropped_bytes=5, reason="line too long"), "0f0c", {}
    ),
    "hermes/frames.completed": ended("completed"),
    "hermes/frames.cancelled": ended("cancelled"),
    "hermes/frames.failed": ended("failed", error="gone", code="agent_failed"),
    "hermes/frames.login": ended("failed", error="log in", code="agent_auth_required"),
    "hermes/frames.timed_out": ended("timed_out", error="too long", code="turn_timed_out"),
    "hermes/frames.interrupted": ended("interrupted", error="cut off", code="turn_interrupted"),
    "hermes/frames.encoded": hermes_frames.encode_parts(
        STREAM, 9, [("done", {}), ("stream_end", {"session_id": "0f0c"})], None
    ).decode(),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shape_is_as_it_was(name: str) -> None:
    path = FOLDER / f"{name}.json"
    text = json.dumps(SHAPES[name], indent=2, ensure_ascii=False) + "\n"
    if UPDATE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.is_file(), "no golden file; see what scripts/golden would write"
    assert path.read_text(encoding="utf-8") == text


def test_no_golden_file_is_left_over() -> None:
    found = {
        f"{path.parent.name}/{path.stem}"
        for name in ("hermes", "deepagent")
        for path in (FOLDER / name).glob("*")
    }
    assert found == set(SHAPES)


@pytest.mark.parametrize(
    ("shown", "model"),
    [
        (SHAPES["deepagent/ack"], SessionAck),
        (SHAPES["deepagent/summary"], SessionSummary),
        (SHAPES["deepagent/detail"], SessionDetail),
        (deepagent_shapes.message(ANSWER), MessageInfo),
        (SHAPES["hermes/compact"], HermesSession),
        (SHAPES["hermes/status"], HermesStatus),
        (SHAPES["hermes/usage"], HermesUsage),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_keys_are_those_of_the_model(shown: Json, model: type[BaseModel]) -> None:
    back = orjson.loads(orjson.dumps(shown))
    assert set(back) == set(model.model_fields)
    model.model_validate(back)


def test_a_frame_that_was_seen_is_not_sent_again() -> None:
    parts: list[hermes_frames.Part] = [("done", {}), ("stream_end", {})]

    def sent(since: str) -> int:
        return hermes_frames.encode_parts(STREAM, 9, parts, hermes_frames.parse_cursor(since, STREAM)).count(
            b"data:"
        )

    assert [sent(f"{STREAM}:8"), sent(f"{STREAM}:9.1"), sent(f"{STREAM}:9")] == [2, 1, 0]


@pytest.mark.parametrize("text", [None, "", "x", "-1", "1.", ".1", "1.x", "0f0c:8:3", "٣", "9" * 16, "1.1.1"])
def test_a_cursor_that_names_no_place_is_none(text: str | None) -> None:
    assert hermes_frames.parse_cursor(text, STREAM) is None


def test_the_later_place_counts() -> None:
    def place(text: str) -> hermes_frames.Cursor | None:
        return hermes_frames.parse_cursor(text, STREAM)

    for lower, higher in (("3", "4"), ("3", "4.1"), ("4.1", "4.2"), ("4.1", "4")):
        assert hermes_frames.choose_later(place(lower), place(higher)) == place(higher)
        assert hermes_frames.choose_later(place(higher), place(lower)) == place(higher)
    assert hermes_frames.choose_later(None, place("2")) == place("2")
    assert hermes_frames.choose_later(None, None) is None


@pytest.mark.parametrize("text", ["", "x", ":1", "x:", "x:y", "x:-1", "x:٣", "x:" + "9" * 16])
def test_a_stream_id_that_names_no_turn_is_none(text: str) -> None:
    assert hermes_shapes.split_stream_id(text) is None


def test_a_stream_id_names_a_turn() -> None:
    assert hermes_shapes.split_stream_id("a:b:12") == ("a:b", 12)
    assert hermes_shapes.stream_id("0f0c", 7) == STREAM
