"""Frames, and waiting for whichever ends first."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.log import LogService
from clawdforge.core.models.events import StoredEvent, draft
from clawdforge.core.models.rows import SessionRow
from clawdforge.core.models.stretches import Stretch, cut
from clawdforge.core.pacing.computing import Computing
from clawdforge.core.pacing.loop_turns import LoopTurns
from clawdforge.core.ports import Tx
from clawdforge.http.connections.waiting import unless_disconnected, wait_first
from clawdforge.http.replies import sse
from clawdforge.http.replies.sse import session_frames, turn_frames
from clawdforge.stores import open_store
from clawdforge.wire.event import EventType, number
from clawdforge.wire.event_forms import Form, nest
from clawdforge.wire.json_bounds import LARGE_BYTES
from clawdforge.wire.sse import Decoder

AT = 1_700_000_000_000_000


def event(seq: int, kind: EventType, turn: int | None, **fields: object) -> StoredEvent:
    return StoredEvent(seq, kind.value, turn, number(seq, draft(kind, turn, AT, fields).body))


async def batches(*found: list[StoredEvent]) -> AsyncIterator[list[Stretch]]:
    for batch in found:
        yield list(cut(batch))


async def test_a_batch_is_one_piece_with_ids_and_types() -> None:
    batch = [event(1, EventType.TURN_QUEUED, 1), event(2, EventType.TEXT, 1, content="a\nb")]
    pieces = [piece async for piece in session_frames(batches(batch), Form.COMPACT)]
    assert len(pieces) == 1
    frames = list(Decoder().feed(pieces[0]))
    assert [(frame.id, frame.event) for frame in frames] == [("1", "turn.queued"), ("2", "text")]
    assert [frame.data.encode() for frame in frames] == [stored.data for stored in batch]


@pytest.mark.parametrize("form", list(Form))
async def test_a_large_event_is_sent_in_slices_between_the_others(form: Form) -> None:
    large = event(2, EventType.TEXT, 1, agent_session_id="a", content="x" * (LARGE_BYTES + 1))
    batch = [event(1, EventType.TURN_QUEUED, 1), large, event(3, EventType.TURN_ENDED, 1)]
    pieces = [piece async for piece in session_frames(batches(batch), form)]
    assert len(pieces) > 4
    assert all(len(piece) <= sse.PIECE_BYTES for piece in pieces)
    frames = list(Decoder().feed(b"".join(pieces)))
    assert [(frame.id, frame.data.encode()) for frame in frames] == [
        (str(stored.seq), stored.in_form(form)) for stored in batch
    ]
    whole = [piece.endswith(sse.FRAME_END) for piece in pieces]
    assert whole == [False] * (len(pieces) - 2) + [True, True]  # no heartbeat before


LONG = "y" * (LARGE_BYTES + 1)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (EventType.TEXT, {"content": LONG}),
        (EventType.TOOL_CALL, {"name": "n", "args": {"x": LONG}, "update": {"sessionUpdate": "tool_call"}}),
    ],
)
async def test_readers_of_a_large_event_share_one_copy(
    tmp_path: Path, kind: EventType, fields: dict[str, Any]
) -> None:
    store = await open_store(tmp_path / "data", SystemClock())
    row = SessionRow(app_name="a", session_id="s", agent="demo", cwd="/w", created_at=1, updated_at=1)

    def work(tx: Tx) -> None:
        tx.add_session(row)
        tx.append("s", [draft(kind, None, 1, {"agent_session_id": "x", **fields})])

    await store.write("a", work)
    log = LogService(store, LoopTurns(), Computing())
    readers = [log.follow_stretches("a", "s", 0, Form.NESTED) for _ in range(3)]
    found = await asyncio.gather(*(anext(reader) for reader in readers))
    first, second, third = (stretch.events for (stretch,) in found)
    assert first[0] is second[0] is third[0]
    assert (first[0]._other is None) is (kind is EventType.TEXT), "there before it is needed, or not needed"
    made = b"".join(first[0].slices(Form.NESTED, 1000))
    assert made == orjson.dumps(nest(orjson.loads(first[0].data)))
    assert b"".join(first[0].slices(Form.COMPACT, 1000)) == first[0].data
    for reader in readers:
        await reader.aclose()
    await store.close()


async def test_a_turns_stream_has_its_own_events_only_and_ends_with_it() -> None:
    found = [
        [event(5, EventType.TURN_QUEUED, 2), event(6, EventType.TEXT, 1)],
        [event(7, EventType.TURN_ENDED, 1), event(8, EventType.TURN_STARTED, 2)],
        [event(9, EventType.SESSION_CHANGED, None), event(10, EventType.TURN_ENDED, 2)],
        [event(11, EventType.TURN_QUEUED, 2)],
    ]
    text = b"".join([piece async for piece in turn_frames(batches(*found), 2, Form.COMPACT)])
    assert [frame.id for frame in Decoder().feed(text)] == ["5", "8", "10"]


async def test_the_first_to_end_stops_the_others_and_its_error_comes_out() -> None:
    stopped = asyncio.Event()

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async def fails() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        await wait_first(endless(), fails())
    assert stopped.is_set()


async def test_work_is_given_up_when_the_client_is_gone() -> None:
    async def receive() -> dict[str, str]:
        return {"type": "http.disconnect"}

    assert await unless_disconnected(receive, asyncio.sleep(60, "late")) is None
