"""What a job changes of sessions is written once, at its end, or before a statement that could see it."""

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
from clawdforge.wire.errors import SessionNotFound
from tests.conformance.stores.samples import APP, NO_LIMIT, a_message, log_of, make, said


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
        assert sum(sql.startswith("INSERT INTO events") for sql in written) == 3  # one of them, three times
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
    assert look_at(queries.session.insert) == (True, True)
    assert look_at(queries.message.insert) == (False, True)
    assert look_at(queries.turn.insert) == (False, False)
