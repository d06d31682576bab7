"""Whoever has lost a session lets no graph in, however large the number of its claim is."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.ports import LeaseLost
from clawdforge.core.running.opening import Opener
from clawdforge.stores.postgres.graph_threads import PgGraphThreads
from clawdforge.stores.sqlite.store import SqliteStore
from tests.conformance.stores.samples import APP, make
from tests.graph_database import GraphDatabase, free_port
from tests.needs import needs
from tests.postgres import run_postgres

pytestmark = [needs("postgres"), needs("langgraph-postgres")]


@pytest.fixture
def database() -> Iterator[GraphDatabase]:
    with run_postgres(port=free_port()) as postgres:
        yield GraphDatabase(postgres)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await SqliteStore.open(tmp_path / "data", SystemClock())
    yield opened
    await opened.close()


async def test_a_claim_that_a_failover_lost_cuts_no_graph_off(
    store: SqliteStore, database: GraphDatabase
) -> None:
    """The standby knew nothing of claim 9, and gave out a smaller one."""
    sid = await make(store)
    kept = await store.write(APP, lambda tx: tx.claim(sid, "b"))
    assert kept < 9
    opener = Opener.__new__(Opener)
    opener._store = store
    ours, lost = (
        cast(Any, SimpleNamespace(app=APP, session_id=sid, started=SimpleNamespace(fence=fence)))
        for fence in (kept, 9)
    )
    threads = await PgGraphThreads.open(database.main, database.given, 3, 1 << 20)
    try:
        await threads.begin(sid, 9, None)  # before the failover
        await opener._begin_thread(threads, ours, None)
        with pytest.raises(LeaseLost):
            await opener._begin_thread(threads, lost, None)
    finally:
        await threads.close()
    found = "SELECT claim FROM passes WHERE session_id = $1"
    assert await asyncio.to_thread(database.fetch, found, sid) == [(kept,)]
