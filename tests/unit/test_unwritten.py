"""What a job changes of sessions is written once, at its end, or before a statement that could see it."""

import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.models.rows import SessionQuery
from clawdforge.core.ports import Tx
from clawdforge.stores import open_store
from clawdforge.stores.sqlite.connection import Db
from clawdforge.stores.sqlite.queries import Queries
from clawdforge.stores.sqlite.store import SqliteStore
from clawdforge.stores.sqlite.tx import SqliteTx
from clawdforge.stores.sqlite.unwritten import GATHERED, look_at
from clawdforge.wire.errors import SessionNotFound, TurnNotFound
from clawdforge.wire.turn import TurnState
from tests.conformance.stores.samples import APP, NO_LIMIT, a_message, a_turn, log_of, make, said


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    found = await open_store(tmp_path / "data", SystemClock())
    yield found
    await found.close()


def traced(tx: Tx, work: Callable[[], object]) -> list[str]:
    """The statements that some work runs, but for those of triggers."""
    assert isinstance(tx, SqliteTx)
    db = tx._unwritten.plain
    assert isinstance(db, Db)
    asked: list[str] = []

    def note(_cursor: apsw.Cursor, sql: str, _values: Any) -> bool:
        asked.append(sql)
        return True

    db.connection.exec_trace = note
    try:
        work()
    finally:
        db.connection.exec_trace = None
    return asked


async def test_many_changes_of_a_session_are_one_statement(store: SqliteStore) -> None:
    sid = await make(store)

    def work(tx: Tx) -> None:
        assert isinstance(tx, SqliteTx)
        tx.session(sid)

        def change() -> None:
            fence = tx.claim(sid, "node")
            tx.append(sid, [said("a")], fence=fence)
            tx.change_session(sid, title="first", turn_count=1)
            tx.append(sid, [said("b"), said("c")], fence=fence)
            tx.change_session(sid, title="last")
            assert (row := tx.session(sid))
            assert (row.title, row.turn_count, row.head, row.fence) == ("last", 1, 3, fence)

        assert traced(tx, change) == []
        written = traced(tx, tx.write_changes)
        assert sum(sql.startswith("UPDATE sessions") for sql in written) == 1
        inserts = [sql for sql in written if sql.startswith("INSERT INTO events")]
        assert len(inserts) == 1, "few events are one statement"
        assert sum("session_bytes" in sql for sql in written) == 1

    await store.write(APP, work)
    found = await store.read(APP, lambda view: view.session(sid))
    assert found
    assert (found.title, found.head, found.holder) == ("last", 3, "node")
    assert await log_of(store, sid) == [1, 2, 3]


async def test_whoever_looks_finds_what_waits(store: SqliteStore) -> None:
    sid = await make(store)

    def work(tx: Tx) -> None:
        tx.append(sid, [said("a")])
        assert [event.seq for event in tx.events(sid, after=0, limit=9, max_bytes=NO_LIMIT)] == [1]
        before = tx.stored_bytes()
        tx.append(sid, [said("b")])
        assert sum(tx.stored_bytes().values()) > sum(before.values())
        tx.change_session(sid, title="found")
        page, _ = tx.sessions(SessionQuery(q="found"))
        assert [row.session_id for row in page] == [sid]
        tx.change_session(sid, title="again")
        tx.add_message(a_message(sid))
        assert (row := tx.session(sid))
        assert (row.title, row.last_message, row.head) == ("again", 1, 2)
        tx.change_session(sid, title="gone", closed_at=5)  # written at once, after what waited
        assert (row := tx.session(sid))
        assert (row.title, row.closed_at) == ("gone", 5)

    await store.write(APP, work)


async def test_a_session_that_is_not_there_cannot_be_changed(store: SqliteStore) -> None:
    sid = await make(store)

    def work(tx: Tx) -> None:
        for change in (lambda s: tx.change_session(s, title="x"), lambda s: tx.claim(s, "node")):
            with pytest.raises(SessionNotFound):
                change("nobody")
        tx.change_session(sid, deleted_at=1)
        with pytest.raises(SessionNotFound):
            tx.change_session(sid, title="x")

    await store.write(APP, work)


def test_every_statement_that_could_see_what_waits_is_known() -> None:
    """A column that waits stands in no statement that is taken for one that cannot see it."""
    queries = Queries()
    blind = [
        (name, sql)
        for group in (queries.view, queries.tx, queries.sets, queries.packs)
        for name, sql in group.items()
        if not look_at(sql).sees
    ]
    assert blind
    for name, sql in blind:
        assert not [column for column in GATHERED if f"sessions.{column}" in sql], name
    assert look_at(queries.session.insert) == (True, True, False, True, ())
    assert look_at(queries.message.insert) == (False, True, False, True, ("messages",))
    assert look_at(queries.turn.insert) == (False, False, True, True, ())
    assert look_at(queries.budget.insert) == (False, False, False, True, ("budgets",))
    assert look_at(queries.view["turn"]) == (False, False, True, False, ())
    asking = [sql for sql in queries.view.values() if re.search(r"(FROM|JOIN) turns", sql)]
    assert len(asking) > 10
    assert all(look_at(sql).sees_turns for sql in asking)


async def test_a_turn_that_starts_in_the_job_that_adds_it_is_written_once(store: SqliteStore) -> None:
    sid = await make(store)

    def start(tx: Tx) -> list[str]:
        assert isinstance(tx, SqliteTx)
        assert tx.session(sid)
        assert tx.active_turn(sid) is None

        def work() -> None:
            tx.add_turn(a_turn(sid))
            tx.change_turn(sid, 1, state=TurnState.RUNNING, started_at=5)

        assert traced(tx, work) == []
        return traced(tx, tx.write_changes)

    written = await store.write(APP, start)
    assert [sql for sql in written if "turns" in sql] == [Queries().turn.insert]
    found = await store.read(APP, lambda view: view.turn(sid, 1))
    assert found == a_turn(sid, state=TurnState.RUNNING, started_at=5)


async def test_whoever_looks_finds_a_turn_that_waits(store: SqliteStore) -> None:
    sid = await make(store)

    def work(tx: Tx) -> None:
        assert (tx.active_turn(sid), tx.turn(sid, 1), tx.count_queued(sid)) == (None, None, 0)
        tx.add_turn(a_turn(sid))
        assert tx.count_queued(sid) == 1
        tx.add_turn(a_turn(sid, 2))
        tx.change_turn(sid, 2, state=TurnState.RUNNING)
        assert (active := tx.active_turn(sid))
        assert (active.turn_index, tx.count_queued(sid)) == (2, 1)
        tx.add_turn(a_turn(sid, 3))
        tx.change_turn(sid, 3, prompt="x" * 20_000, files=("f-1",))
        assert (third := tx.turn(sid, 3))
        assert (third.prompt, third.files) == ("x" * 20_000, ("f-1",))
        tx.add_turn(a_turn(sid, 4))
        with pytest.raises(TypeError):
            tx.change_turn(sid, 4, session_key=5)
        with pytest.raises(TurnNotFound):
            tx.change_turn(sid, 9, cut=True)

    await store.write(APP, work)
    turns = await store.read(APP, lambda view: view.turns(sid))
    assert [turn.turn_index for turn in turns] == [1, 2, 3, 4]


async def test_a_turn_of_a_job_that_fails_is_not_there(store: SqliteStore) -> None:
    sid = await make(store)

    def work(tx: Tx) -> None:
        tx.add_turn(a_turn(sid))
        raise SessionNotFound

    with pytest.raises(SessionNotFound):
        await store.write(APP, work)
    assert await store.read(APP, lambda view: view.turns(sid)) == []
