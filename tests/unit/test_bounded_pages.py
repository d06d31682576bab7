"""Pages end at a number of rows or of bytes, have at least one row, and say whether there is more."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.models.rows import MessageRow, SessionQuery, SessionRow, TurnRow
from clawdforge.core.ports import Tx
from clawdforge.stores import open_store
from clawdforge.stores.sqlite.own_rows import Room
from clawdforge.stores.sqlite.store import SqliteStore
from clawdforge.wire.turn import TurnState

APP, COUNT, SIZE = "a", 10, 20_000


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await open_store(tmp_path / "data", SystemClock())
    yield opened
    await opened.close()


def fill(tx: Tx) -> None:
    for number in range(COUNT):
        sid = f"s{number}"
        meta = {"x": "x" * SIZE}
        tx.add_session(
            SessionRow(
                app_name=APP, session_id=sid, agent="d", cwd="/", created_at=1, updated_at=number, meta=meta
            )
        )
    for number in range(COUNT):
        tx.add_message(MessageRow(session_id="s0", role="user", content="x" * SIZE, ts=1))
        tx.add_turn(
            TurnRow(
                session_id="s0",
                turn_index=number + 1,
                state=TurnState.QUEUED,
                prompt="x" * SIZE,
                queued_at=1,
            )
        )


@pytest.mark.parametrize(
    ("limit", "max_bytes", "rows"),
    [
        (COUNT, 1 << 20, COUNT),
        (COUNT - 1, 1 << 20, COUNT - 1),
        (COUNT + 1, 1 << 20, COUNT),
        (COUNT, 5 * SIZE - 1, None),
        (COUNT, 1, 1),
    ],
)
async def test_all_kinds_of_pages_are_bounded_and_complete(
    store: SqliteStore, limit: int, max_bytes: int, rows: int | None
) -> None:
    await store.write(APP, fill)
    seen: dict[str, list[object]] = {"messages": [], "turns": [], "sessions": []}
    pages: dict[str, list[int]] = {name: [] for name in seen}
    after, is_more = 0, True
    while is_more:
        found, is_more = await store.read(
            APP,
            lambda view, after=after: view.message_page(  # type: ignore[misc]
                "s0", after=after, limit=limit, max_bytes=max_bytes, show="visible"
            ),
        )
        after = found[-1].seq
        seen["messages"] += [row.seq for row in found]
        pages["messages"].append(len(found))
    after, is_more = 0, True
    while is_more:
        turns, is_more = await store.read(
            APP,
            lambda view, after=after: view.turn_page("s0", after=after, limit=limit, max_bytes=max_bytes),  # type: ignore[misc]
        )
        after = turns[-1].turn_index
        seen["turns"] += [row.turn_index for row in turns]
        pages["turns"].append(len(turns))
    cursor: str | None = None
    while not pages["sessions"] or cursor is not None:
        query = SessionQuery(limit=limit, max_bytes=max_bytes, cursor=cursor)
        sessions, cursor = await store.read(APP, lambda view, query=query: view.sessions(query))  # type: ignore[misc]
        seen["sessions"] += [row.session_id for row in sessions]
        pages["sessions"].append(len(sessions))
    for name, found_all in seen.items():
        assert len(set(found_all)) == len(found_all) == COUNT, name
        expected = pages[name][0] if rows is None else rows
        assert all(1 <= count <= limit for count in pages[name])
        assert pages[name][0] == expected
        if rows is None:
            assert 2 <= expected <= 4


def test_a_page_is_over_at_the_first_row_that_does_not_fit() -> None:
    room = Room(3, 10, 0)
    assert [room.fits((1, "x" * 5)), room.fits(("x" * 3, b"x" * 2))] == [True, True]
    assert not room.is_over
    assert not room.fits(("x",))
    assert room.is_over
    room = Room(3, 10, 5)
    assert [room.fits((1,)), room.fits((1,)), room.fits((1,))] == [True, True, False]
    room = Room(1, None)
    assert room.fits(("x" * 10_000,))
    assert not room.fits((1,))
    assert room.is_over
