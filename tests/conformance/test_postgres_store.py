"""The Postgres store does what every store must do."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.ports import LeaseLost, Store
from clawdforge.stores.postgres.link import Link
from clawdforge.stores.postgres.migrations import MAKE, migrate
from clawdforge.stores.postgres.store import PostgresStore
from tests.conformance.stores import *  # noqa: F403
from tests.conformance.stores.samples import APP, Reopen, make, said
from tests.needs import needs
from tests.postgres import Postgres, run_postgres

pytestmark = needs("postgres")
WAITING = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with run_postgres() as server:
        yield server


@pytest.fixture
def database(postgres: Postgres) -> Iterator[str]:
    url = postgres.make_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture
async def opened(database: str) -> AsyncIterator[list[Store]]:
    """All that were opened on the database; the last one is in use."""
    stores: list[Store] = [await PostgresStore.open(database, SystemClock())]
    yield stores
    await stores[-1].close()


@pytest.fixture
def store(opened: list[Store]) -> Store:
    return opened[-1]


@pytest.fixture
def reopen(opened: list[Store], database: str) -> Reopen:
    async def again() -> Store:
        await opened[-1].close()
        opened.append(await PostgresStore.open(database, SystemClock()))
        return opened[-1]

    return again


async def test_a_closed_store_has_given_the_database_back(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However late Postgres notices that the connection is gone."""
    ended: list[Link] = []

    def end_later(link: Link) -> None:
        ended.append(link)

    store = await PostgresStore.open(database, SystemClock())
    with monkeypatch.context() as patch:
        patch.setattr(Link, "close", end_later)
        await store.close()
    again = await PostgresStore.open(database, SystemClock())
    await again.close()
    for link in ended:
        await asyncio.to_thread(link.close)


async def test_a_claim_that_a_failover_has_lost_is_not_given_out_again(store: Store, database: str) -> None:
    """An asynchronous standby takes over without it, and another node claims the session there."""
    sid = await make(store)
    lost = await store.write(APP, lambda tx: tx.claim(sid, "a"))

    def fail_over() -> None:
        with contextlib.closing(Link(database)) as link:
            link.run("UPDATE session_heads SET fence = 0, holder = NULL WHERE session_id = $1", (sid,))

    await asyncio.to_thread(fail_over)
    with pytest.raises(LeaseLost):
        await store.write(APP, lambda tx: tx.append(sid, [said("late")], fence=lost))
    kept = await store.write(APP, lambda tx: tx.claim(sid, "b"))
    with pytest.raises(LeaseLost):
        await store.write(APP, lambda tx: tx.append(sid, [said("late")], fence=lost))
    assert await store.write(APP, lambda tx: tx.append(sid, [said("now")], fence=kept)) == 1


async def test_servers_that_start_at_once_make_the_tables_of_an_empty_database_once(
    postgres: Postgres,
) -> None:
    url = await asyncio.to_thread(postgres.make_empty)
    stores = await asyncio.gather(*(PostgresStore.open(url, SystemClock()) for _ in range(3)))
    sid = await make(stores[0])
    for store in stores:
        assert await store.read(APP, lambda view: view.session(sid)) is not None
        await store.close()
    await asyncio.to_thread(postgres.drop_database, url)


def test_a_server_that_makes_the_first_tables_waits_for_another_that_does(postgres: Postgres) -> None:
    """Two that make the same table at once fail, now and then, with one of several errors."""
    url = postgres.make_empty()
    with contextlib.closing(Link(url)) as one, contextlib.closing(Link(url)) as other:
        for statement in MAKE[:2]:
            one.run(statement)
        with ThreadPoolExecutor(1) as pool:
            making = pool.submit(migrate, other, SystemClock())
            while not making.done() and not one.fetch(WAITING):
                time.sleep(0.01)
            assert one.fetch("SELECT to_regclass('schema_lock') IS NULL") == [(True,)]
            one.run("COMMIT")
            assert making.result() == find_version(one)
    postgres.drop_database(url)


def find_version(link: Link) -> int:
    ((found,),) = link.fetch("SELECT max(version) FROM schema_migrations")
    assert isinstance(found, int)
    return found
