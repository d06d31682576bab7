"""The Postgres store does what every store must do."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from clawdforge.core.model import SystemClock
from clawdforge.core.ports import Store
from clawdforge.stores.postgres.link import Link
from clawdforge.stores.postgres.store import PostgresStore
from tests.conformance.stores import *  # noqa: F403
from tests.conformance.stores.samples import Reopen
from tests.needs import needs
from tests.postgres import Postgres, run_postgres

pytestmark = needs("postgres")


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
