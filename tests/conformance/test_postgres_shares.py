"""What an app may have is exact on Postgres too, where jobs that wait together read once."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.rules.quotas import Quotas
from clawdforge.stores.postgres.store import PostgresStore
from clawdforge.wire.disk import DiskForm
from clawdforge.wire.errors import LimitExceeded
from tests.conformance.batches import appends, ask, begins, ends, together
from tests.conformance.stores.samples import APP, OTHER, a_session, make
from tests.needs import needs
from tests.postgres import run_postgres

pytestmark = needs("postgres")
COUNTED = (
    "SELECT app_name, app_bytes.events, (SELECT sum(events) FROM session_bytes AS each"
    " WHERE each.app_name = app_bytes.app_name) FROM app_bytes ORDER BY app_name"
)


@pytest.fixture
def database() -> Iterator[str]:
    with run_postgres() as server:
        yield server.make_database()


@pytest.fixture
async def store(database: str) -> AsyncIterator[PostgresStore]:
    store = await PostgresStore.open(database, SystemClock())
    yield store
    await store.close()


async def test_what_many_sessions_say_together_counts_for_their_app(
    store: PostgresStore, database: str
) -> None:
    """And so does what a server of before counts in the row of a session, where a trigger adds it up."""
    own = [await make(store) for _ in range(5)]
    foreign = [await make(store, a_session(app_name=OTHER)) for _ in range(2)]
    beside = [asyncio.ensure_future(store.write(OTHER, appends(sid, "theirs"))) for sid in foreign]
    await together(store, *(appends(sid, "one", "two") for sid in own))
    await asyncio.gather(*beside)
    ours, theirs = await ask(database, COUNTED)
    assert ours[0] == APP
    assert ours[1] == ours[2] > 0
    assert theirs[1] == theirs[2] > 0
    assert (await store.read(APP, lambda v: v.stored_bytes()))[DiskForm.EVENTS] == ours[1]
    await ask(database, "UPDATE session_bytes SET events = events + 7 RETURNING 1")
    assert (await ask(database, COUNTED))[0][1] == ours[1] + 7 * len(own)
    await store.write(APP, appends(own[0], "more"))
    ours = (await ask(database, COUNTED))[0]
    assert ours[1] == ours[2]


async def test_a_share_of_turns_is_exact_among_those_that_begin_together(store: PostgresStore) -> None:
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
