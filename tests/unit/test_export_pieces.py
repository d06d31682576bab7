"""An export is made in pieces: the same bytes as if it were made at once, and others run in between."""

import asyncio
from functools import partial

import orjson
import pytest
from starlette.responses import StreamingResponse

from clawdforge.core.models.events import StoredEvent, draft
from clawdforge.core.models.rows import MessageRow, SessionRow, TurnRow
from clawdforge.core.pacing.loop_turns import LoopTurns
from clawdforge.core.services.transfer import Exported
from clawdforge.http.dialects.forge import export, shapes
from clawdforge.http.errors import encode
from clawdforge.http.replies.piecewise import WHOLE_BYTES, piecewise, slices
from clawdforge.wire.event import EventType, number
from clawdforge.wire.event_forms import Form
from clawdforge.wire.session import Export
from clawdforge.wire.turn import Outcome, TurnState

ODD = {"messages": [1], "turns": [{"events": []}], "x": '"messages":['}
SESSION = SessionRow(
    app_name="a", session_id="s", agent="d", cwd="/w", created_at=1, updated_at=2, meta=ODD, title="T"
)


def make(messages: int, *, events: bool) -> Exported:
    turn = TurnRow(
        session_id="s",
        turn_index=1,
        state=TurnState.ENDED,
        outcome=Outcome.COMPLETED,
        prompt="p",
        queued_at=1,
    )
    stored = StoredEvent(1, "text", 1, number(1, draft(EventType.TEXT, 1, 1, {"content": "x"}).body))
    rows = [
        MessageRow(session_id="s", seq=seq, role="user", content=f"text {seq}", ts=1)
        for seq in range(1, messages + 1)
    ]
    return Exported(SESSION, rows, [turn] * (messages // 2), [stored] * messages if events else None)


@pytest.mark.parametrize("messages", [0, 1, 120])
@pytest.mark.parametrize("events", [False, True])
def test_the_pieces_are_the_document(messages: int, events: bool) -> None:
    found = make(messages, events=events)
    pieces = list(export.document(found))
    whole = Export(
        session=export._session(SESSION),
        messages=[shapes.message(row) for row in found.messages],
        turns=[export._turn(row) for row in found.turns],
        events=None
        if found.events is None
        else [orjson.Fragment(e.in_form(Form.NESTED)) for e in found.events],
    )
    assert b"".join(pieces) == encode(whole)
    assert len(pieces) > messages // export.GROUP_ROWS
    text = b"".join(export.markdown(found)).decode()
    assert text.startswith("# T\n\nd, 1970")
    assert text.count("## User") == messages
    assert text.endswith("\n")


async def test_a_long_reply_is_sent_as_it_is_made() -> None:
    body = b"x" * (WHOLE_BYTES + 1)
    short, long = (
        await piecewise(slices(body[:-1]), "text/plain", partial(LoopTurns().slice, "a")),
        await piecewise(slices(body), "text/plain", partial(LoopTurns().slice, "a")),
    )
    assert short.body == body[:-1]
    assert isinstance(long, StreamingResponse)
    assert b"".join([bytes(piece) async for piece in long.body_iterator]) == body  # type: ignore[arg-type]  # bytes
    passes, is_done = 0, False

    async def count() -> None:
        nonlocal passes
        while not is_done:
            passes += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    again = await piecewise(slices(body), "text/plain", partial(LoopTurns().slice, "a"))
    assert isinstance(again, StreamingResponse)
    async for _ in again.body_iterator:
        pass
    is_done = True
    await counting
    assert passes >= 5
