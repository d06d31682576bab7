"""Long reads from Postgres come one at a time, apps in turn, and none after the end."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.ports import View
from clawdforge.stores.postgres.store import PostgresStore
from clawdforge.wire.errors import Stopping
from tests.needs import needs
from tests.postgres import Postgres, run_postgres

pytestmark = needs("postgres")


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with run_postgres() as server:
        yield server


@pytest.fixture
def database(postgres: Postgres) -> str:
    return postgres.make_database()


@pytest.fixture
async def store(database: str) -> AsyncIterator[PostgresStore]:
    store = await PostgresStore.open(database, SystemClock())
    yield store
    await store.close()


async def test_who_reads_much_waits_behind_others(store: PostgresStore) -> None:
    seen: list[str] = []

    def read(name: str) -> None:
        def work(view: View) -> None:
            seen.append(name)
            view.app_row()
            time.sleep(0.05)
            seen.append(name)

        reads.append(asyncio.create_task(store.read_long(name[0], work)))

    reads: list[asyncio.Task[None]] = []
    for name in ("a1", "a2", "a3", "b1"):
        read(name)
    await asyncio.gather(*reads)
    assert seen == ["a1", "a1", "a2", "a2", "b1", "b1", "a3", "a3"]


async def test_nothing_long_is_read_after_the_end(database: str) -> None:
    store = await PostgresStore.open(database, SystemClock())
    await store.close()
    with pytest.raises(Stopping):
        await store.read_long("a", lambda view: view.app_row())
