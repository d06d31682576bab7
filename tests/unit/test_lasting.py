"""What hardly anybody changes is read once, and anew after whatever may have changed it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.models.budgets import BudgetRow
from clawdforge.core.models.rows import AppRow, PauseRow
from clawdforge.core.ports import SystemTx, Tx
from clawdforge.stores import open_store
from clawdforge.stores.sqlite.connection import Db
from clawdforge.stores.sqlite.lasting import MOST, Lasting
from clawdforge.stores.sqlite.snapshot import FILE
from clawdforge.stores.sqlite.store import SqliteStore
from clawdforge.stores.sqlite.tx import SqliteTx
from clawdforge.wire.budgets import BudgetPeriod, BudgetScope, BudgetThen
from tests.conformance.stores.samples import APP, make

BUDGET = BudgetRow(
    app_name=APP,
    budget_id="b",
    scope=BudgetScope.APP,
    period=BudgetPeriod.DAY,
    max_tokens=100,
    warn_at=0.8,
    action=BudgetThen.STOP,
    created_at=1,
)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    found = await open_store(tmp_path / "data", SystemClock())
    yield found
    await found.close()


def ask(tx: Tx, session_id: str) -> tuple[Any, ...]:
    """All that is kept; every list is the caller's own."""
    app, pauses, endpoints = tx.app_row(), tx.pauses(), tx.endpoints()
    found = app, pauses, endpoints, tx.budgets_for(None, [session_id]), tx.reservations(session_id, 1)
    return *found, tx.permissions(session_id, state="pending")


async def test_the_next_job_does_not_ask_again(store: SqliteStore) -> None:
    session_id = await make(store)
    first = await store.write(APP, lambda tx: ask(tx, session_id))

    def work(tx: Tx) -> list[str]:
        assert isinstance(tx, SqliteTx)
        db = tx._unwritten.plain
        assert isinstance(db, Db)
        asked: list[str] = []

        def note(_cursor: apsw.Cursor, sql: str, _values: Any) -> bool:
            asked.append(sql)
            return True

        db.connection.exec_trace = note
        try:
            assert ask(tx, session_id) == first == (None, [], [], [], [], [])
        finally:
            db.connection.exec_trace = None
        return asked

    assert await store.write(APP, work) == []


async def test_what_a_job_or_the_operator_writes_is_seen_by_the_next(store: SqliteStore) -> None:
    session_id = await make(store)

    def limit(tx: Tx) -> list[BudgetRow]:
        assert tx.budgets_for(None, [session_id]) == []
        tx.put_budget(BUDGET)
        return tx.budgets_for(None, [session_id])

    def pause(tx: SystemTx) -> None:
        tx.put_app(AppRow(APP, 1, max_agents=3))
        tx.put_pause(PauseRow(app_name=APP, paused_at=1))

    await store.write(APP, lambda tx: ask(tx, session_id))
    assert await store.write(APP, limit) == [BUDGET]
    await store.write_system(pause)
    app, pauses, _, budgets, _, _ = await store.write(APP, lambda tx: ask(tx, session_id))
    assert app.max_agents == 3
    assert [one.app_name for one in pauses] == [APP]
    assert budgets == [BUDGET]


@pytest.mark.parametrize("before", [0, 1])
async def test_what_was_undone_is_not_known(store: SqliteStore, before: int) -> None:
    """Whether the job that fails was the first of its transaction or came after another."""
    session_id = await make(store)

    def fail(tx: Tx) -> None:
        tx.put_budget(BUDGET)
        assert tx.budgets_for(None, [session_id]) == [BUDGET]
        raise KeyError

    jobs = [store.write(APP, lambda tx: ask(tx, session_id)) for _ in range(before)]
    results = await asyncio.gather(*jobs, store.write(APP, fail), return_exceptions=True)
    assert isinstance(results[-1], KeyError)
    assert await store.write(APP, lambda tx: tx.budgets_for(None, [session_id])) == []


async def test_what_another_program_writes_is_seen(store: SqliteStore, tmp_path: Path) -> None:
    session_id = await make(store)
    assert (await store.write(APP, lambda tx: ask(tx, session_id)))[1] == []
    with apsw.Connection(str(tmp_path / "data" / FILE)) as other:
        other.execute("INSERT INTO pauses (app_name, agent, paused_at) VALUES (?, '', 1)", (APP,))
    other.close()
    pauses = await store.write(APP, lambda tx: tx.pauses())
    assert [one.app_name for one in pauses] == [APP]


def test_it_does_not_grow_for_ever() -> None:
    lasting, asked = Lasting(), []
    for key in [*range(MOST + 1), 0]:
        lasting.find("pauses", key, lambda key=key: asked.append(key))  # type: ignore[misc]
    assert asked == [*range(MOST + 1), 0]
