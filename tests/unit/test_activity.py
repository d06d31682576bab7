"""What a session is doing: kept with every change of a turn, and always what its turns say."""

import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.models.rows import PermissionRow, SessionQuery, TurnRow
from clawdforge.core.ports import Tx
from clawdforge.core.rules.activity import find_activity
from clawdforge.core.rules.cuts import cut_from, cut_turn, restore_last
from clawdforge.core.rules.interrupted import end_interrupted_turn
from clawdforge.core.rules.sessions import SessionState, state_of
from clawdforge.core.rules.turns import Ending, finish, need_session, queue_turn, start_next, withdraw
from clawdforge.core.running.permissions import _record_decision, _record_request
from clawdforge.core.services.history import start_context
from clawdforge.stores import open_store
from clawdforge.stores.sqlite.migrations import MIGRATIONS_TABLE, list_migrations, migrate
from clawdforge.stores.sqlite.store import SqliteStore
from clawdforge.wire.session import Activity
from clawdforge.wire.turn import Outcome
from tests.conformance.stores.samples import APP, OTHER, a_message, a_permission, a_session, a_turn

SID = "s-1"
STEPS = (
    "queue",
    "queue",
    "start",
    "start",
    "ask",
    "decide",
    "end",
    "end",
    "undo",
    "redo",
    "withdraw",
    "clear",
)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await open_store(tmp_path / "data", SystemClock())
    await opened.write(APP, lambda tx: tx.add_session(a_session(session_id=SID)))
    yield opened
    await opened.close()


def queue(tx: Tx) -> TurnRow:
    return queue_turn(tx, need_session(tx, SID), a_turn(SID), 1)


def start(tx: Tx) -> TurnRow | None:
    started = start_next(tx, SID, "node", 1)
    return None if started is None else started.turn


def end(tx: Tx, outcome: Outcome) -> None:
    turn = tx.active_turn(SID)
    if turn is not None:
        message = a_message(SID, role="assistant", turn=turn.turn_index)
        finish(tx, SID, turn.turn_index, Ending(outcome=outcome), 1, message=message)


def ask(tx: Tx, number: int = 1) -> PermissionRow | None:
    session, turn = tx.session(SID), tx.active_turn(SID)
    if session is None or turn is None:
        return None
    row = a_permission(SID, f"p-{number}", turn_index=turn.turn_index)
    _record_request(tx, row, session.fence)
    return row


def decide(tx: Tx) -> None:
    for row in tx.permissions(SID, state="pending")[:1]:
        _record_decision(tx, row, "allow_once", None, "caller", None, 1)


def undo(tx: Tx) -> None:
    prompts = tx.last_prompts(SID, 1)
    if prompts and tx.active_turn(SID) is None and not tx.count_queued(SID):
        cut_from(tx, SID, prompts[0].seq, 1, why="undo")


def redo(tx: Tx) -> None:
    if need_session(tx, SID).redo and tx.active_turn(SID) is None and not tx.count_queued(SID):
        restore_last(tx, SID, 1)


def clear(tx: Tx) -> None:
    if tx.active_turn(SID) is None and not tx.count_queued(SID):
        tx.archive_messages(SID)
        start_context(tx, SID, "new")


async def state(store: SqliteStore) -> SessionState:
    found = await store.read(APP, lambda view: state_of(view, need_session(view, SID)))
    assert found.row.activity is found.activity, "the row says what the turns say"
    doing = [one for one in Activity if await listed(store, one)]
    assert doing == [found.activity], "and the list finds it there only"
    return found


async def listed(store: SqliteStore, activity: Activity) -> list[str]:
    rows, _ = await store.read(APP, lambda view: view.sessions(SessionQuery(activity=activity)))
    return [row.session_id for row in rows]


async def doing(store: SqliteStore) -> tuple[str, str | None, int]:
    found = await state(store)
    return found.activity.value, found.row.last_outcome, found.pending


async def test_a_turn_from_the_queue_to_its_end(store: SqliteStore) -> None:
    assert await doing(store) == ("idle", None, 0)
    await store.write(APP, queue)
    assert await doing(store) == ("queued", None, 0)
    await store.write(APP, start)
    assert await doing(store) == ("running", None, 0)
    await store.write(APP, queue)
    assert await doing(store) == ("running", None, 0)
    await store.write(APP, ask)
    await store.write(APP, lambda tx: ask(tx, 2))
    assert await doing(store) == ("waiting", None, 2)
    await store.write(APP, queue)
    await store.write(APP, decide)
    assert await doing(store) == ("waiting", None, 1)
    await store.write(APP, decide)
    assert await doing(store) == ("running", None, 0)
    await store.write(APP, lambda tx: end(tx, Outcome.COMPLETED))
    assert await doing(store) == ("queued", "completed", 0)
    await store.write(APP, lambda tx: withdraw(tx, SID, 2, 1))
    assert await doing(store) == ("queued", "completed", 0)
    await store.write(APP, lambda tx: withdraw(tx, SID, 3, 1))
    assert await doing(store) == ("idle", "completed", 0), "what never began is no outcome"


@pytest.mark.parametrize(
    ("outcome", "rest"),
    [
        (Outcome.COMPLETED, "idle"),
        (Outcome.CANCELLED, "idle"),
        (Outcome.FAILED, "failed"),
        (Outcome.TIMED_OUT, "failed"),
        (Outcome.INTERRUPTED, "interrupted"),
    ],
)
async def test_at_rest_it_tells_how_the_last_turn_ended(
    store: SqliteStore, outcome: Outcome, rest: str
) -> None:
    for number, ending in enumerate((Outcome.FAILED, outcome)):
        await store.write(APP, queue)
        assert (await doing(store))[0] == "queued"
        await store.write(APP, start)
        await store.write(APP, lambda tx, number=number: ask(tx, number))  # type: ignore[misc]
        await store.write(APP, lambda tx, ending=ending: end(tx, ending))  # type: ignore[misc]
    assert await doing(store) == (rest, outcome.value, 0)
    await store.write(APP, undo)
    assert await doing(store) == ("failed", "failed", 0)
    await store.write(APP, undo)
    assert await doing(store) == ("idle", None, 0)
    await store.write(APP, redo)
    await store.write(APP, redo)
    assert await doing(store) == (rest, outcome.value, 0)
    await store.write(APP, clear)
    assert await doing(store) == ("idle", None, 0)


async def test_a_turn_that_is_rolled_back_leaves_the_one_before_it(store: SqliteStore) -> None:
    for outcome in (Outcome.COMPLETED, Outcome.CANCELLED):
        await store.write(APP, queue)
        await store.write(APP, start)
        await store.write(APP, lambda tx, outcome=outcome: end(tx, outcome))  # type: ignore[misc]
    await store.write(APP, queue)
    await store.write(APP, lambda tx: cut_turn(tx, SID, 2, 1))
    assert await doing(store) == ("queued", "completed", 0)


async def test_what_a_crash_cut_off_is_interrupted_or_queued_again(store: SqliteStore) -> None:
    for policy, activity in (("hold", "interrupted"), ("continue", "queued")):
        await store.write(APP, lambda tx, policy=policy: tx.change_session(SID, on_interrupt=policy))  # type: ignore[misc]
        await store.write(APP, queue)
        await store.write(APP, start)
        await store.write(APP, lambda tx: end_interrupted_turn(tx, SID, "crash", 1))
        assert await doing(store) == (activity, "interrupted", 0)


@pytest.mark.parametrize("seed", range(8))
async def test_whatever_happens_the_row_says_what_the_turns_say(store: SqliteStore, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - a choice of steps
    calls: dict[str, Any] = {
        "queue": queue,
        "start": start,
        "decide": decide,
        "undo": undo,
        "redo": redo,
        "clear": clear,
    }
    for number in range(80):
        step = rng.choice(STEPS)
        if step == "ask":
            work: Any = lambda tx, number=number: ask(tx, number)  # noqa: E731
        elif step == "end":
            how = rng.choice(list(Outcome))
            work = lambda tx, how=how: end(tx, how)  # noqa: E731
        elif step == "withdraw":
            work = lambda tx: [withdraw(tx, SID, one.turn_index, 1) for one in tx.queued_turns(SID, 1)]  # noqa: E731
        else:
            work = calls[step]
        await store.write(APP, work)
        await state(store)


async def test_the_list_of_another_app_has_none_of_them(store: SqliteStore) -> None:
    await store.write(APP, queue)
    for activity in Activity:
        query = SessionQuery(activity=activity)
        rows, _ = await store.read(OTHER, lambda view, query=query: view.sessions(query))  # type: ignore[misc]
        assert rows == []
    await store.write(APP, lambda tx: tx.change_session(SID, deleted_at=1))
    assert await listed(store, Activity.QUEUED) == []


async def test_the_migration_finds_out_what_sessions_are_doing(tmp_path: Path) -> None:
    """Of a database that was made before, with sessions of every kind."""
    db = apsw.Connection(str(tmp_path / "old.db"))
    for _, path in list_migrations()[:11]:
        db.execute(path.read_text("utf-8"))
    db.execute(MIGRATIONS_TABLE)
    for number, path in list_migrations()[:11]:
        db.execute("INSERT INTO schema_migrations VALUES (?, ?, 1)", (number, path.stem))
    turns: dict[str, list[tuple[str, str | None, int]]] = {
        "idle": [("ended", "failed", 0), ("ended", "completed", 0)],
        "failed": [("ended", "timed_out", 0), ("ended", "completed", 1)],
        "interrupted": [("ended", "interrupted", 0)],
        "queued": [("ended", "failed", 0), ("queued", None, 0)],
        "running": [("running", None, 0), ("queued", None, 0)],
        "waiting": [("queued", None, 0), ("waiting", None, 0)],
    }
    for sid, rows in turns.items():
        db.execute(
            "INSERT INTO sessions (session_id, app_name, agent, cwd, created_at, updated_at)"
            " VALUES (?, ?, 'a', '/w', 1, 1)",
            (sid, APP),
        )
        for index, (state, outcome, cut) in enumerate(rows, 1):
            db.execute(
                "INSERT INTO turns (session_id, turn_index, state, prompt, queued_at, outcome, cut)"
                " VALUES (?, ?, ?, 'p', 1, ?, ?)",
                (sid, index, state, outcome, cut),
            )
            if state == "ended":
                db.execute(
                    "INSERT INTO messages (session_id, seq, role, content, ts, turn, cut)"
                    " VALUES (?, ?, 'user', 'p', 1, ?, ?)",
                    (sid, index, index, cut),
                )
    migrate(db, SystemClock())
    found = db.execute("SELECT session_id, activity, last_outcome FROM sessions").fetchall()
    assert {row[0]: row[1] for row in found} == {name: name for name in turns}
    outcomes = {row[0]: row[2] for row in found}
    assert outcomes["idle"] == "completed"
    assert outcomes["failed"] == "timed_out"
    assert outcomes["running"] is None
    db.close()


def test_a_word_of_a_newer_server_is_at_rest() -> None:
    assert find_activity(None, 0, "exploded") is Activity.IDLE
