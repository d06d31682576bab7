"""What the forge dialect answers is a wire model, with every field given."""

from typing import Any

import orjson
import pytest

from clawdforge.core.models.events import StoredEvent
from clawdforge.core.models.rows import MessageRow, PermissionRow, SessionRow, TokenRow, TurnRow
from clawdforge.core.rules.retention import Ages
from clawdforge.core.rules.sessions import SessionState
from clawdforge.http.dialects.forge import shapes
from clawdforge.http.errors import encode
from clawdforge.wire.admin import TokenInfo
from clawdforge.wire.base import Reply
from clawdforge.wire.event import EventPage, encode_body, number
from clawdforge.wire.event_forms import Form
from clawdforge.wire.message import Message
from clawdforge.wire.session import Session, SessionPage, SessionReply
from clawdforge.wire.turn import Outcome, Permission, Turn, TurnReply, TurnState

AT = 1_700_000_000_654_321
AGES = Ages(idle=3600, closed=86400, upload=86400)
SESSION = SessionRow(
    app_name="a", session_id="s", agent="demo", cwd="/w", created_at=AT, updated_at=AT, labels=("x",), head=7
)
RESTING = SessionState(row=SESSION, running_turn=None, queued_turns=0)
TURN = TurnRow(
    session_id="s",
    turn_index=3,
    state=TurnState.ENDED,
    outcome=Outcome.COMPLETED,
    stop_reason="end_turn",
    prompt="hi",
    queued_at=AT,
    started_at=AT + 1_000_000,
    ended_at=AT + 2_500_000,
    usage={"input_tokens": 3},
)


@pytest.mark.parametrize(
    ("shown", "model"),
    [
        (
            shapes.session(SessionState(row=SESSION, running_turn=None, queued_turns=0), Session, AGES),
            Session,
        ),
        (shapes.turn(TURN), Turn),
        (shapes.message(MessageRow(session_id="s", role="user", content="hi", ts=AT, seq=1)), Message),
        (
            shapes.permission(
                PermissionRow(
                    permission_id="p",
                    session_id="s",
                    turn_index=1,
                    tool="t",
                    kind=None,
                    request={},
                    requested_at=AT,
                )
            ),
            Permission,
        ),
        (shapes.token(TokenRow(token_id="t", app_name="a", hash=b"", created_at=AT)), TokenInfo),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_every_field_of_the_model_is_given_and_sent(shown: Reply, model: type[Reply]) -> None:
    assert type(shown) is model
    assert shown.model_fields_set == set(model.model_fields)
    back = orjson.loads(encode(shown))
    assert list(back) == list(model.model_fields)
    assert model.model_validate(back) == shown
    assert back == shown.model_dump(mode="json")


def test_a_model_is_sent_with_what_a_newer_one_added_and_with_models_inside() -> None:
    page = SessionPage(sessions=[Session(session_id="s", new=[1])], count=1)
    assert orjson.loads(encode(page)) == page.model_dump(mode="json")
    with pytest.raises(TypeError):
        encode({"odd": object()})


def test_times_are_whole_seconds() -> None:
    """X-07."""
    shown = shapes.session(RESTING, SessionReply, AGES)
    assert (shown.ok, shown.created_at, shown.closed_at, shown.live) == (True, 1_700_000_000, None, True)


def test_a_whole_turn_is_valid_json_around_ready_bytes() -> None:
    events: list[Any] = [{"seq": 1}, {"seq": 2}]
    raw = shapes.turn_opening(TURN) + b",".join(map(orjson.dumps, events)) + b"]}"
    reply = TurnReply.model_validate(orjson.loads(raw))
    assert set(orjson.loads(raw)) == set(TurnReply.model_fields)
    assert (reply.duration_ms, reply.events, reply.stop_reason) == (1500, events, "end_turn")


def test_an_events_page_is_made_of_ready_bytes() -> None:
    stored = [
        StoredEvent(seq, "text", 1, number(seq, encode_body("text", 1, AT, {"content": "x"})))
        for seq in (4, 5)
    ]
    page = EventPage.model_validate_json(shapes.events_page(stored, 3, Form.COMPACT))
    assert [event.seq for event in page.events] == [4, 5]
    assert page.next == 5
    assert orjson.loads(shapes.events_page([], 9, Form.COMPACT)) == {"ok": True, "events": [], "next": 9}
