"""One job: what it reads, once and never stale; and what it undoes when it fails, which is only its own."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.ports import LeaseLost, Tx
from clawdforge.stores import open_store
from clawdforge.stores.sqlite import job_queue
from clawdforge.stores.sqlite.connection import Db
from clawdforge.stores.sqlite.store import SqliteStore
from clawdforge.stores.sqlite.tx import SqliteTx
from clawdforge.wire.errors import SessionNotFound
from clawdforge.wire.turn import TurnState
from tests.conformance.stores.samples import APP, a_message, a_turn, log_of, make, said

BOUND = 60.0


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    found = await open_store(tmp_path / "data", SystemClock())
    yield found
    await found.close()


async def test_a_row_is_read_once_and_anew_after_every_change(store: SqliteStore) -> None:
    sid = await make(store)

    def work(tx: Tx) -> list[str]:
        assert isinstance(tx, SqliteTx)
        asked: list[str] = []

        def note(_cursor: apsw.Cursor, sql: str, _values: Any) -> bool:
            asked.append(sql)
            return True

        db = tx._unwritten.plain
        assert isinstance(db, Db)
        db.connection.exec_trace = note
        try:
            first = tx.session(sid)
            assert first is not None
            assert tx.session(sid) is first
            assert len(asked) == 1
            assert [tx.app_row(), tx.app_row(), tx.pauses(), tx.pauses()] == [None, None, [], []]
            assert len(asked) == 3
            tx.change_session(sid, title="other")
            assert (changed := tx.session(sid))
            assert changed.title == "other"
            tx.add_message(a_message(sid))
            assert (said_to := tx.session(sid))
            assert said_to.last_message == first.last_message + 1
            tx.add_turn(a_turn(sid))
            assert tx.active_turn(sid) is None
            tx.change_turn(sid, 1, state=TurnState.RUNNING)
            assert (active := tx.active_turn(sid))
            assert active.turn_index == 1
            assert (turn := tx.turn(sid, 1))
            assert turn.state is TurnState.RUNNING
        finally:
            db.connection.exec_trace = None
        return asked

    await store.write(APP, work)


async def test_what_is_known_of_a_log_follows_what_is_written(store: SqliteStore) -> None:
    sid, other = await make(store), await make(store)

    def work(tx: Tx) -> None:
        fence = tx.claim(sid, "node")
        assert tx.append(sid, [said("a")], fence=fence) == 1
        tx.change_session(sid, title="x")
        assert tx.append(other, [said("b"), said("c")]) == 2
        assert tx.append(sid, [said("d")], fence=fence) == 2
        again = tx.claim(sid, "another")
        assert again == fence + 1
        with pytest.raises(LeaseLost):
            tx.append(sid, [said("late")], fence=fence)
        assert tx.append(sid, [said("e")], fence=again) == 3
        assert (row := tx.session(sid))
        assert (row.head, row.fence) == (3, again)
        tx.change_session(other, deleted_at=1)
        with pytest.raises(SessionNotFound):
            tx.append(other, [said("f")])

    await store.write(APP, work)
    assert await log_of(store, sid) == [1, 2, 3]


@pytest.mark.parametrize("fails", [0, 1, 2])
async def test_a_job_that_fails_undoes_only_itself_wherever_it_stands(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, fails: int
) -> None:
    """The first of a transaction has no savepoint."""
    monkeypatch.setattr(job_queue, "MAX_BATCH_SECS", BOUND)  # the first waits until the others do
    sessions = [await make(store) for _ in range(3)]
    entered, go_on = threading.Event(), threading.Event()

    def job(number: int, tx: Tx) -> int:
        if number == 0:
            entered.set()
            go_on.wait(BOUND)  # until the others wait, so that all are in one transaction
        head = tx.append(sessions[number], [said("x")])
        if number == fails:
            raise RuntimeError(number)
        return head

    before = store._writer.commits
    jobs = [
        asyncio.ensure_future(store.write(APP, lambda tx, number=number: job(number, tx)))  # type: ignore[misc]
        for number in range(3)
    ]
    await asyncio.to_thread(entered.wait, BOUND)
    go_on.set()
    results = await asyncio.gather(*jobs, return_exceptions=True)
    assert [type(result) is RuntimeError for result in results] == [number == fails for number in range(3)]
    assert [await log_of(store, sid) for sid in sessions] == [[] if n == fails else [1] for n in range(3)]
    assert store._writer.commits == before + 1
