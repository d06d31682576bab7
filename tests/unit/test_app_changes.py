"""Changes in the store: found by an index, told once, forgotten after a day, and awaited without a gap."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path

import apsw
import pytest

from clawdforge.core.clock import SECOND, SystemClock
from clawdforge.core.models.events import AgentEvent, draft, draft_of
from clawdforge.core.models.rows import PermissionRow, SessionRow
from clawdforge.core.pacing.loop_turns import LoopTurns
from clawdforge.core.ports import Store, Tx
from clawdforge.core.ports.changes import ChangeRow
from clawdforge.core.services.changes import Change, ChangeKind, ChangeService
from clawdforge.stores import open_store
from clawdforge.stores.sqlite.queries import Queries
from clawdforge.wire.event import EventType

DAY = 86_400 * SECOND
ROW = SessionRow(app_name="a", session_id="s", agent="demo", cwd="/x", created_at=1, updated_at=1)


@dataclass
class HandClock(SystemClock):
    at: int = 1_800_000_000 * SECOND

    def now(self) -> int:
        return self.at


@dataclass
class Desk:
    path: Path
    clock: HandClock
    store: Store

    async def add(self, session_id: str, app: str = "a") -> None:
        def work(tx: Tx) -> None:
            tx.add_session(replace(ROW, app_name=app, session_id=session_id))
            tx.append(session_id, [draft(EventType.SESSION_CREATED, None, self.clock.at, {})])

        await self.store.write(app, work)

    async def changes(self, after: int = 0, app: str = "a", limit: int = 100) -> list[ChangeRow]:
        return await self.store.read(app, lambda view: view.changes(after=after, limit=limit))

    async def bounds(self, app: str = "a") -> tuple[int, int]:
        return await self.store.read(app, lambda view: view.change_bounds())

    async def append(self, session_id: str, *kinds: EventType) -> None:
        drafts = [draft(kind, 1, self.clock.at, {}) for kind in kinds]
        await self.store.write("a", lambda tx: tx.append(session_id, drafts))


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    clock = HandClock()
    store = await open_store(tmp_path / "data", clock)
    yield Desk(tmp_path / "data" / "forge.db", clock, store)
    await store.close()


async def test_each_is_told_once_with_its_latest_number(desk: Desk) -> None:
    await desk.add("s")
    await desk.add("t")
    await desk.append("s", EventType.TURN_QUEUED, EventType.TURN_STARTED)
    assert await desk.changes() == [ChangeRow(2, "t", None), ChangeRow(3, "s", None)]
    assert await desk.changes(2) == [ChangeRow(3, "s", None)]
    assert await desk.bounds() == (0, 3)


async def test_one_transaction_is_one_change_of_a_session(desk: Desk) -> None:
    await desk.add("s")

    def work(tx: Tx) -> None:
        tx.append("s", [draft(EventType.TURN_QUEUED, 1, 1, {})])
        tx.append("s", [draft(EventType.TURN_STARTED, 1, 1, {})])
        tx.add_permission(
            PermissionRow(
                permission_id="p",
                session_id="s",
                turn_index=1,
                tool="x",
                kind=None,
                request={},
                requested_at=1,
            )
        )

    await desk.store.write("a", work)
    assert await desk.changes(1) == [ChangeRow(2, "s", None), ChangeRow(3, "s", "p")]


async def test_chunks_are_no_changes(desk: Desk) -> None:
    await desk.add("s")
    said = draft_of(AgentEvent(EventType.TEXT, {"content": "x"}), 1, 1)
    await desk.store.write("a", lambda tx: tx.append("s", [said] * 100))
    await desk.append("s", EventType.PERMISSION_DECIDED, EventType.OUTPUT_TRUNCATED, EventType.BUDGET_WARNED)
    assert await desk.bounds() == (0, 1)


async def test_what_is_undone_is_no_change(desk: Desk) -> None:
    await desk.add("s")

    def work(tx: Tx) -> None:
        tx.append("s", [draft(EventType.SESSION_CHANGED, None, 1, {})])
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        await desk.store.write("a", work)
    assert await desk.bounds() == (0, 1)


async def test_one_that_is_shown_for_a_moment_only_was_never_there(desk: Desk) -> None:
    await desk.store.write("a", lambda tx: tx.add_session(replace(ROW, deleted_at=9 * DAY)))

    def work(tx: Tx) -> None:
        tx.reveal_session("s")
        tx.append("s", [draft(EventType.MESSAGE_POSTED, None, 1, {})])
        tx.change_session("s", deleted_at=9 * DAY)

    await desk.store.write("a", work)
    assert await desk.changes() == []
    await desk.store.write("a", lambda tx: tx.reveal_session("s"))
    assert await desk.changes() == [ChangeRow(1, "s", None)]
    await desk.store.write("a", lambda tx: tx.change_session("s", deleted_at=1))
    assert await desk.changes() == [ChangeRow(2, "s", None)]


@pytest.mark.parametrize(("age", "is_kept"), [(DAY - 1, True), (DAY, True), (DAY + 1, False)])
async def test_old_ones_are_forgotten_and_a_cursor_before_them_is_too_old(
    desk: Desk, age: int, is_kept: bool
) -> None:
    await desk.add("s")
    await desk.add("t", "b")
    desk.clock.at += age
    await desk.add("u")
    before = desk.clock.at - DAY
    assert await desk.store.read_system(lambda view: view.apps_with_old_changes(before)) == (
        [] if is_kept else ["a", "b"]
    )
    assert await desk.store.write("a", lambda tx: tx.forget_changes(before, 10))
    kept = [ChangeRow(1, "s", None)] if is_kept else []
    assert await desk.changes() == [*kept, ChangeRow(2, "u", None)]
    assert await desk.bounds() == ((0, 2) if is_kept else (1, 2))
    assert await desk.changes(app="b") == [ChangeRow(1, "t", None)], "another app's are its own"
    service = ChangeService(desk.store, LoopTurns())
    found = [change.kind async for change in service.read("a", 0)]
    assert found == ([ChangeKind.SESSION] * 2 if is_kept else [ChangeKind.RESET])
    assert [change.kind async for change in service.read("a", 1)] == [ChangeKind.SESSION]


async def test_forgetting_goes_on_in_slices_and_numbers_never_come_again(desk: Desk) -> None:
    for number in range(5):
        await desk.add(f"s{number}")
    desk.clock.at += 2 * DAY
    rounds = 1
    while not await desk.store.write("a", lambda tx: tx.forget_changes(desk.clock.at - DAY, 2)):
        rounds += 1
    assert rounds == 3
    assert await desk.bounds() == (5, 5)
    await desk.add("new")
    assert await desk.changes(5) == [ChangeRow(6, "new", None)]


def test_every_question_is_answered_by_an_index(tmp_path: Path) -> None:
    asyncio.run(_make(tmp_path))
    queries = Queries()
    connection = apsw.Connection(str(tmp_path / "data" / "forge.db"))
    statements = [queries.view["changes"], queries.tx["first_changes"], queries.tx["forget_changes"]]
    for sql in [*statements, queries.system["apps_with_old_changes"]]:
        names = {"app": "a", "after": 0, "limit": 1, "through": 1, "before": 1}
        plan = [str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", names)]
        assert not any("SCAN app_changes" in step or "TEMP B-TREE" in step for step in plan), (sql, plan)
    connection.close()


async def _make(tmp_path: Path) -> None:
    await (await open_store(tmp_path / "data", SystemClock())).close()


async def test_a_follower_misses_nothing_and_is_told_the_latest_state(desk: Desk) -> None:
    service = ChangeService(desk.store, LoopTurns())
    seen: list[Change] = []
    told = asyncio.Event()

    async def follow() -> None:
        async with aclosing(service.follow("a", None)) as changes:
            async for change in changes:
                seen.append(change)
                told.set()

    task = asyncio.create_task(follow())
    await asyncio.wait_for(told.wait(), 20)
    assert (seen[0].kind, seen[0].cursor, service.readers) == (ChangeKind.CURSOR, 0, 1)
    for number in range(30):
        await desk.add(f"s{number}")
        await desk.append("s0", EventType.SESSION_CHANGED)
    async with asyncio.timeout(20):
        while not seen or seen[-1].cursor < (await desk.bounds())[1]:
            told.clear()
            await told.wait()
    ids = [change.state.row.session_id for change in seen if change.state is not None]
    assert {f"s{number}" for number in range(30)} <= set(ids)
    assert [change.cursor for change in seen] == sorted({change.cursor for change in seen})
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert service.readers == 0
