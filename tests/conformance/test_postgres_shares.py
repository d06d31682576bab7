"""What an app may have is exact on Postgres too, where jobs that wait together read once."""

import asyncio
from collections.abc import Iterator

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.rules.quotas import Quotas
from clawdforge.stores.postgres.store import PostgresStore
from clawdforge.wire.errors import LimitExceeded
from tests.conformance.batches import begins, ends, together
from tests.conformance.stores.samples import APP, OTHER, a_session, make
from tests.needs import needs
from tests.postgres import run_postgres

pytestmark = needs("postgres")


@pytest.fixture
def database() -> Iterator[str]:
    with run_postgres() as server:
        yield server.make_database()


async def test_a_share_of_turns_is_exact_among_those_that_begin_together(database: str) -> None:
    store = await PostgresStore.open(database, SystemClock())
    try:
        await check_share(store)
    finally:
        await store.close()


async def check_share(store: PostgresStore) -> None:
    """With one that ends among them, and one of another app."""
    sids, few = [await make(store) for _ in range(5)], Quotas(turns=2)
    foreign = await make(store, a_session(app_name=OTHER))
    fence = await store.write(APP, begins(sids[0]))
    works = [begins(sids[1], quotas=few), begins(sids[2], quotas=few), ends(sids[0], 1, fence)]
    works += [begins(sids[3], quotas=few), begins(sids[4], quotas=few)]
    beside = asyncio.ensure_future(store.write(OTHER, begins(foreign, quotas=few)))
    found = await together(store, *works)
    await beside
    refused = [isinstance(one, LimitExceeded) for one in found]
    assert refused == [False, True, False, False, True], found
    assert await store.read(APP, lambda v: v.turns_in_flight()) == 2
    assert await store.read(OTHER, lambda v: v.turns_in_flight()) == 1
