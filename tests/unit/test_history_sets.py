"""Long changes of a history: seen at once and whole, written in bounded slices, finished after a crash."""

import random
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.models.events import draft
from clawdforge.core.models.rows import MessageRow, SessionRow, TurnRow
from clawdforge.core.ports import Tx, View
from clawdforge.core.rules.cuts import cut_from, cut_turn, last_cut, restore_last
from clawdforge.core.rules.turns import Ending, finish, need_session, queue_turn, start_next
from clawdforge.core.services.finishing import Finisher
from clawdforge.stores import open_store
from clawdforge.stores.sqlite import sets, view
from clawdforge.stores.sqlite.store import SqliteStore
from clawdforge.upkeep.deep import examine_deep
from clawdforge.wire.errors import SessionBusy
from clawdforge.wire.event import EventType
from clawdforge.wire.turn import Outcome, TurnState
from tests.unit.walks import check_pages

APP, SID = "alpha", "s-1"
T = TypeVar("T")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await open_store(tmp_path / "data", SystemClock())
    await opened.write(APP, lambda tx: tx.add_session(a_session(SID)))
    yield opened
    await opened.close()


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (sets, view):
        monkeypatch.setattr(module, "SLICE_ROWS", 4)
    monkeypatch.setattr(sets, "COPY_ROWS", 4)
    monkeypatch.setattr(sets, "INDEX_ROWS", 3)


def a_session(session_id: str, deleted_at: int | None = None) -> SessionRow:
    return SessionRow(
        app_name=APP,
        session_id=session_id,
        agent="demo",
        cwd="/w",
        created_at=1,
        updated_at=1,
        deleted_at=deleted_at,
    )


def add_exchange(tx: Tx, turn: int) -> None:
    row = TurnRow(
        session_id=SID,
        turn_index=turn,
        state=TurnState.ENDED,
        outcome=Outcome.COMPLETED,
        prompt="p",
        queued_at=1,
        started_at=1,
    )
    tx.add_turn(row)
    for role in ("user", "assistant"):
        tx.add_message(MessageRow(session_id=SID, role=role, content=f"needle {turn}", ts=1, turn=turn))
    tx.change_session(SID, redo=(), last_turn=turn)


async def fill(store: SqliteStore, exchanges: int) -> None:
    def work(tx: Tx) -> None:
        for turn in range(1, exchanges + 1):
            add_exchange(tx, turn)

    await store.write(APP, work)


def take_turn(tx: Tx) -> None:
    """A turn without an answer, with all that the log tells of it."""
    row = TurnRow(session_id=SID, turn_index=0, state=TurnState.QUEUED, prompt="needle", queued_at=1)
    turn = queue_turn(tx, need_session(tx, SID), row, 1).turn_index
    start_next(tx, SID, "node", 1)
    finish(tx, SID, turn, Ending(outcome=Outcome.COMPLETED), 1)


async def rows_written(store: SqliteStore, work: Callable[[Tx], T]) -> tuple[int, T]:
    """What a job returns, and how many rows it wrote, those of triggers included."""

    def counted(tx: Tx) -> tuple[int, T]:
        connection = store._writer._db.connection  # type: ignore[union-attr]  # it is open
        before = connection.total_changes()
        result = work(tx)
        return connection.total_changes() - before, result

    return await store.write(APP, counted)


@dataclass
class Picture:
    """What readers are shown of the session."""

    visible: list[int]
    present: list[int]
    archived: list[int]
    count: int
    found: list[int]
    turns_cut: list[int]


async def look(store: SqliteStore) -> Picture:
    def work(v: View) -> Picture:
        everything = v.messages(SID, show="all")
        hits, _ = v.search("needle", limit=1000)
        return Picture(
            visible=[m.seq for m in v.messages(SID)],
            present=[m.seq for m in everything],
            archived=[m.seq for m in everything if m.archived],
            count=need_session(v, SID).message_count,
            found=sorted(hit.seq for hit in hits),
            turns_cut=[turn.turn_index for turn in v.turns(SID, limit=1000) if turn.cut],
        )

    return await store.read(APP, work)


async def test_a_long_undo_writes_no_more_than_a_short_one(store: SqliteStore) -> None:
    await fill(store, 600)
    short, _ = await rows_written(store, lambda tx: cut_from(tx, SID, 1199, 1, why="undo"))
    await store.write(APP, lambda tx: restore_last(tx, SID, 1))
    long, moved = await rows_written(store, lambda tx: cut_from(tx, SID, 1, 1, why="undo"))
    assert len(moved.messages) == 1200
    assert long <= short * 1.5
    seen = await look(store)
    assert (seen.visible, seen.present, seen.count, seen.found) == ([], [], 0, [])
    assert seen.turns_cut == list(range(1, 601))
    done = False
    while not done:
        written, done = await rows_written(store, lambda tx: tx.finish_change(SID))
        assert written <= view.SLICE_ROWS * 3 + 2
        assert await look(store) == seen
    stored = sqlite_rows(store, "SELECT count(*) FROM messages WHERE cut = 1")
    assert (stored, sqlite_rows(store, "SELECT count(*) FROM turns WHERE cut = 1")) == (1200, 600)


async def test_a_long_clear_writes_no_more_than_a_short_one(store: SqliteStore) -> None:
    await fill(store, 300)
    written, count = await rows_written(store, lambda tx: tx.archive_messages(SID))
    assert (written, count) == (1, 600)
    seen = await look(store)
    assert (seen.visible, seen.count, seen.found) == ([], 0, [])
    assert seen.archived == seen.present == list(range(1, 601))
    await Finisher(store).finish_all()
    assert await look(store) == seen
    assert sqlite_rows(store, "SELECT count(*) FROM messages WHERE archived = 1 AND stale = 0") == 600
    assert sqlite_rows(store, "SELECT count(*) FROM messages_fts WHERE messages_fts MATCH 'needle'") == 0


async def test_long_texts_make_short_slices(store: SqliteStore) -> None:
    text = "x" * 400_000
    row = MessageRow(session_id=SID, role="user", content=text, ts=1)
    await store.write(APP, lambda tx: [tx.add_message(row) for _ in range(6)])
    await store.write(APP, lambda tx: cut_from(tx, SID, 1, 1, why="undo"))
    assert sqlite_rows(store, "SELECT count(*) FROM messages WHERE cut = 1") == 0
    await store.write(APP, lambda tx: tx.finish_change(SID))
    assert sqlite_rows(store, "SELECT count(*) FROM messages WHERE cut = 1") == 2


@pytest.mark.usefixtures("small_slices")
async def test_a_crash_between_slices_finishes_an_undo_and_takes_back_a_redo(
    store: SqliteStore, tmp_path: Path
) -> None:
    await fill(store, 10)
    whole = await look(store)
    await store.write(APP, lambda tx: cut_from(tx, SID, 5, 1, why="undo"))
    await store.write(APP, lambda tx: tx.finish_change(SID))
    undone = await look(store)
    store = await reopened(store, tmp_path)
    assert await look(store) == undone
    await Finisher(store).finish_all()
    assert await look(store) == undone
    assert sqlite_rows(store, "SELECT count(*) FROM messages WHERE cut = 1") == 16
    cut = await store.read(APP, lambda v: last_cut(v, need_session(v, SID)))
    await store.write(APP, lambda tx: tx.restore_slice(SID, cut["messages"], cut["turns"], 0))
    assert await look(store) == undone
    store = await reopened(store, tmp_path)
    await Finisher(store).finish_all()
    assert await look(store) == undone
    assert sqlite_rows(store, "SELECT count(*) FROM messages WHERE cut = 1") == 16
    await redo(store)
    await Finisher(store).finish_all()
    assert await look(store) == whole
    await store.close()


@pytest.mark.usefixtures("small_slices")
async def test_a_fork_is_copied_in_slices_and_seen_when_it_is_whole(store: SqliteStore) -> None:
    await fill(store, 10)
    await store.write(APP, lambda tx: tx.add_session(a_session("s-2", deleted_at=2**60)))
    after, jobs = 0, 0
    while after < 20:
        assert await store.read(APP, lambda v: v.session("s-2")) is None
        after = await store.write(
            APP,
            lambda tx, after=after: tx.copy_history(SID, "s-2", after=after, through=20, at=9),  # type: ignore[misc]
        )
        jobs += 1
    assert jobs == 5
    assert await store.read_system(lambda v: v.deleted_sessions(2**50, 9)) == []  # still being made
    await store.write(APP, lambda tx: tx.reveal_session("s-2"))
    await Finisher(store).finish_all()

    def check(v: View) -> None:
        assert [m.content for m in v.messages("s-2")] == [m.content for m in v.messages(SID)]
        assert [t.turn_index for t in v.turns("s-2")] == list(range(1, 11))
        row = need_session(v, "s-2")
        assert (row.message_count, row.last_message, row.last_turn, row.turn_count) == (20, 20, 10, 10)
        assert len(v.search("needle", limit=100, session_id="s-2")[0]) == 20

    await store.read(APP, check)


@pytest.mark.usefixtures("small_slices")
@pytest.mark.parametrize("slices", [0, 1])
@pytest.mark.parametrize("change", ["undo", "clear"])
async def test_the_doctor_counts_what_readers_are_shown(
    store: SqliteStore, tmp_path: Path, change: str, slices: int
) -> None:
    """A server that was killed before it had marked every row left a sound folder."""
    for _ in range(10):
        await store.write(APP, take_turn)
    if change == "undo":
        await store.write(APP, lambda tx: cut_from(tx, SID, 5, 1, why="undo"))
    else:
        await store.write(APP, clear)
    for _ in range(slices):
        assert not await store.write(APP, lambda tx: tx.finish_change(SID))
    seen = await look(store)
    assert seen.count == (4 if change == "undo" else 0)
    await store.close()
    assert [one for one in examine_deep(tmp_path / "data", SystemClock()) if one.level != "ok"] == []
    found = list(examine_deep(tmp_path / "data", SystemClock(), repair=True))
    assert [one for one in found if one.level != "ok" or one.about == "repair"] == []
    store = await open_store(tmp_path / "data", SystemClock())
    assert await look(store) == seen
    await store.close()


async def test_a_redo_of_one_long_turn_leaves_what_was_posted_meanwhile_alone(store: SqliteStore) -> None:
    """Whether it is broken off or not: a message that it does not restore is never cut by it."""

    def roll_back(tx: Tx) -> None:
        add_exchange(tx, 1)
        row = MessageRow(session_id=SID, role="user", content="needle", ts=1, turn=2)
        turn = TurnRow(session_id=SID, turn_index=2, state=TurnState.ENDED, prompt="p", queued_at=1)
        tx.add_turn(replace(turn, outcome=Outcome.CANCELLED, started_at=1))
        tx.append(SID, [draft(EventType.TURN_STARTED, 2, 1, {"message": tx.add_message(row)})])
        tx.change_turn(SID, 2, first_seq=1)
        tx.add_message(replace(row, content="needle, posted", turn=None))
        tx.add_message(replace(row, role="assistant", content="x" * (1 << 21)))
        cut_turn(tx, SID, 2, 1)

    await store.write(APP, roll_back)
    before = await look(store)
    assert (before.visible, before.count) == ([1, 2, 4], 3)
    cut = await store.read(APP, lambda v: last_cut(v, need_session(v, SID)))
    assert cut["messages"] == [3, 5]
    if not await store.read(APP, lambda v: v.fits_at_once(SID, cut["messages"])):
        await store.write(APP, lambda tx: tx.restore_slice(SID, cut["messages"], cut["turns"], 0))
    assert await look(store) == before
    await Finisher(store).finish_all()  # as the next start does after a crash
    assert await look(store) == before
    await redo(store)
    after = await look(store)
    assert (after.visible, after.count) == ([1, 2, 3, 4, 5], 5)


@dataclass
class Model:
    """The same history, kept the plain way: a set of marks for each message."""

    last: int = 0
    cut: set[int] = field(default_factory=set)
    archived: set[int] = field(default_factory=set)
    redo: list[list[int]] = field(default_factory=list)

    @property
    def visible(self) -> list[int]:
        return [n for n in range(1, self.last + 1) if n not in self.cut | self.archived]


@pytest.mark.usefixtures("small_slices")
@pytest.mark.parametrize("seed", range(12))
async def test_readers_see_what_a_plain_history_would_show(
    store: SqliteStore, tmp_path: Path, seed: int
) -> None:
    """Whatever is done in whatever order, finished or not, before or after a restart."""
    rng, model, turn = random.Random(seed), Model(), 0  # noqa: S311 - a choice of steps
    for _ in range(60):
        step = rng.choice(["say", "say", "undo", "redo", "clear", "finish", "finish", "index", "reopen"])
        if step == "say":
            for _ in range(rng.choice([1, 6])):
                turn += 1
                await store.write(APP, lambda tx, turn=turn: add_exchange(tx, turn))  # type: ignore[misc]
                model.last += 2
            model.redo.clear()
        elif step == "undo" and model.visible:
            gone = model.visible[-2 * rng.choice([1, 2, 8, 50]) :]
            try:
                await store.write(APP, lambda tx, gone=gone: cut_from(tx, SID, gone[0], 1, why="undo"))  # type: ignore[misc]
            except SessionBusy:
                await Finisher(store).finish(APP, SID)
                await store.write(APP, lambda tx, gone=gone: cut_from(tx, SID, gone[0], 1, why="undo"))  # type: ignore[misc]
            model.cut |= set(gone)
            model.redo.append(gone)
        elif step == "redo" and model.redo:
            await redo(store)
            model.cut -= set(model.redo.pop())
        elif step == "clear" and rng.random() < 0.4:
            assert await store.write(APP, clear) == len(model.visible)
            model.archived |= set(model.visible)
            model.redo.clear()
        elif step == "finish":
            await store.write(APP, lambda tx: tx.finish_change(SID))
        elif step == "index":
            await store.write(APP, lambda tx: tx.refresh_index())
        elif step == "reopen" and rng.random() < 0.3:
            store = await reopened(store, tmp_path)
        seen = await look(store)
        assert (seen.visible, seen.count) == (model.visible, len(model.visible)), step
        assert seen.present == [n for n in range(1, model.last + 1) if n not in model.cut], step
        assert set(seen.archived) == model.archived - model.cut, step
        await store.read(APP, lambda v, seen=seen: check_pages(v, SID, seen.visible, "visible"))  # type: ignore[misc]
        await store.read(APP, lambda v, seen=seen: check_pages(v, SID, seen.present, "all"))  # type: ignore[misc]
        assert set(seen.found) <= set(model.visible), step
        assert seen.turns_cut == sorted({(n + 1) // 2 for n in model.cut}), step
    await Finisher(store).finish_all()
    assert (await look(store)).found == model.visible
    assert sqlite_rows(store, "SELECT count(*) FROM messages WHERE cut = 1") == len(model.cut)
    assert sqlite_rows(store, "SELECT count(*) FROM messages WHERE stale = 1") == 0
    indexed = sqlite_rows(store, "SELECT count(*) FROM messages_fts WHERE messages_fts MATCH 'needle'")
    assert indexed == len(model.visible)
    assert await store.integrity() == []
    await store.close()


def clear(tx: Tx) -> int:
    tx.change_session(SID, redo=())
    count = tx.archive_messages(SID)
    tx.append(SID, [draft(EventType.HISTORY_CLEARED, None, 1, {"messages": count, "context": 2})])
    return count


async def redo(store: SqliteStore) -> None:
    """As the service does it."""
    cut = await store.read(APP, lambda v: last_cut(v, need_session(v, SID)))
    messages, turns, done = cut["messages"], cut["turns"], 0
    if not await store.read(APP, lambda v: v.fits_at_once(SID, messages)):
        while done < len(messages) + len(turns):
            done = await store.write(
                APP,
                lambda tx, done=done: tx.restore_slice(SID, messages, turns, done),  # type: ignore[misc]
            )
    await store.write(APP, lambda tx: restore_last(tx, SID, 1))


async def reopened(store: SqliteStore, tmp_path: Path) -> SqliteStore:
    await store.close()
    return await open_store(tmp_path / "data", SystemClock())


def sqlite_rows(store: SqliteStore, sql: str) -> int:
    reader = store._reader.db
    assert reader is not None
    found = reader.row(sql, {})
    return int(found[0]) if found else 0
