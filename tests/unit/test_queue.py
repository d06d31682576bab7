"""The order of a queue as the rules see it, and the uploads that its turns name."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.models.rows import FileRow, SessionRow, TurnRow
from clawdforge.core.ports import Store, Tx
from clawdforge.core.rules.queue import find_next, order_queue
from clawdforge.core.rules.queue_edits import change_queued
from clawdforge.core.rules.turns import MAX_QUEUED, need_session, start_next
from clawdforge.stores import open_store
from clawdforge.wire.turn import ChangeTurn, IfBusy, TurnState

APP, SID = "a", "s"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = await open_store(tmp_path / "data", SystemClock())
    row = SessionRow(app_name=APP, session_id=SID, agent="demo", cwd="/x", created_at=1, updated_at=1)
    await opened.write(APP, lambda tx: tx.add_session(row))
    yield opened
    await opened.close()


def add(tx: Tx, index: int, if_busy: IfBusy = IfBusy.QUEUE, *, automatic: bool = False) -> None:
    row = TurnRow(
        session_id=SID,
        turn_index=index,
        state=TurnState.QUEUED,
        prompt=f"p{index}",
        queued_at=1,
        if_busy=if_busy,
        automatic=automatic,
    )
    tx.add_turn(row)


def add_all(tx: Tx, last: int) -> None:
    for index in range(1, last + 1):
        add(tx, index)


async def order(store: Store) -> list[int]:
    def read(tx: Tx) -> list[int]:
        session = need_session(tx, SID)
        found, first = order_queue(tx, session), find_next(tx, session)
        assert (None if first is None else first.turn_index) == (found[0] if found else None)
        return found

    return await store.write(APP, read)


async def move(store: Store, index: int, position: int) -> int:
    request = ChangeTurn(position=position)
    return await store.write(APP, lambda tx: change_queued(tx, SID, index, request, 1)[1])


async def test_who_goes_first_goes_before_what_was_ordered_and_later_ones_after(store: Store) -> None:
    await store.write(APP, lambda tx: add_all(tx, 3))
    assert await order(store) == [1, 2, 3]
    assert await move(store, 3, 0) == 0
    await store.write(APP, lambda tx: add(tx, 4))
    await store.write(APP, lambda tx: add(tx, 5, IfBusy.INTERRUPT))
    await store.write(APP, lambda tx: add(tx, 6, automatic=True))
    assert await order(store) == [5, 6, 3, 1, 2, 4]
    assert await move(store, 2, 0) == 0
    assert await order(store) == [2, 5, 6, 3, 1, 4], "also before one that interrupts"


async def test_a_started_turn_leaves_the_order(store: Store) -> None:
    await store.write(APP, lambda tx: add_all(tx, 3))
    await move(store, 3, 0)
    started = await store.write(APP, lambda tx: start_next(tx, SID, "node", 1))
    assert started is not None
    assert started.turn.turn_index == 3
    session = await store.read(APP, lambda view: need_session(view, SID))
    assert session.queue_order == (1, 2)


async def test_the_longest_queue_is_ordered(store: Store) -> None:
    await store.write(APP, lambda tx: add_all(tx, MAX_QUEUED))
    assert await move(store, MAX_QUEUED, 0) == 0
    assert await move(store, 1, MAX_QUEUED) == MAX_QUEUED - 1
    assert await order(store) == [MAX_QUEUED, *range(2, MAX_QUEUED), 1]


async def test_uploads_are_kept_for_the_turn_that_names_them_now(store: Store) -> None:
    def begin(tx: Tx) -> None:
        add(tx, 1)
        for token in ("old", "new"):
            tx.add_file(
                FileRow(file_token=token, app_name=APP, name="n", size=1, path=f"/{token}", created_at=1)
            )

    async def unused() -> set[str]:
        rows = await store.read_system(lambda view: view.old_files(2, 10))
        return {row.file_token for row in rows}

    await store.write(APP, begin)
    for files, rest in ((["old"], {"new"}), (["new"], {"old"}), ([], {"old", "new"})):
        request = ChangeTurn(files=files)
        await store.write(APP, lambda tx, request=request: change_queued(tx, SID, 1, request, 1))  # type: ignore[misc]
        assert await unused() == rest
