"""What moves with every event is a narrow row on Postgres: it is cheap to write, and nobody sees that."""

import asyncio
import contextlib
import random
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final

import asyncpg
import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.models.rows import SessionQuery
from clawdforge.core.ports import Store, Tx
from clawdforge.stores import open_store
from clawdforge.stores.postgres.link import Link
from clawdforge.stores.postgres.migrations import migrate
from clawdforge.stores.postgres.queries import SQL
from clawdforge.stores.postgres.store import PostgresStore
from clawdforge.wire.base import Micros
from clawdforge.wire.session import Activity
from tests.conformance.batches import Work, appends, ask, begins, ends, together
from tests.conformance.stores.samples import APP, a_session, make, said
from tests.needs import needs
from tests.postgres import Postgres, run_postgres

pytestmark = needs("postgres")
SESSIONS, TURNS, CHUNKS = 30, 3, 5
STEPS = 60
UPDATES: Final = (
    "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables"
    " WHERE relname IN ('sessions', 'session_heads') ORDER BY relname = 'sessions'"
)
OTHERS: Final = (
    "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    " AND backend_type = 'client backend'"
)
YESTERDAY: Final = 11


class Clock:
    """One that moves by itself, and sometimes back."""

    def __init__(self) -> None:
        self.time = 5_000

    def now(self) -> Micros:
        return self.time

    def steady(self) -> Micros:
        return self.time


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with run_postgres() as server:
        yield server


@pytest.fixture
def database(postgres: Postgres) -> Iterator[str]:
    url = postgres.make_database()
    yield url
    postgres.drop_database(url)


@contextlib.asynccontextmanager
async def opened(database: str) -> AsyncIterator[Store]:
    store = await PostgresStore.open(database, SystemClock())
    try:
        yield store
    finally:
        await store.close()


async def count_updates(database: str) -> list[tuple[Any, ...]]:
    """Of heads and of sessions, and how many of them were HOT; nobody else may be connected."""

    async with asyncio.timeout(60):
        while await ask(database, OTHERS):  # what a connection has done is counted at its end
            pass
    return await ask(database, UPDATES)


async def test_what_is_said_changes_one_narrow_row_and_no_index(database: str) -> None:
    async with opened(database) as store:
        sids = [await make(store) for _ in range(SESSIONS)]
    for turn in range(1, TURNS + 1):
        async with opened(database) as store:
            fences = await asyncio.gather(*(store.write(APP, begins(sid)) for sid in sids))
        before = await count_updates(database)
        async with opened(database) as store:
            for _ in range(CHUNKS):
                await together(store, *(appends(sid, "a", "b") for sid in sids))
        heads, sessions = await count_updates(database)
        assert heads[0] - before[0][0] == SESSIONS * CHUNKS
        assert sessions == before[1]
        async with opened(database) as store:
            done = zip(sids, fences, strict=True)
            await asyncio.gather(*(store.write(APP, ends(sid, turn, fence)) for sid, fence in done))
    (updates, hot), _ = await count_updates(database)
    assert updates >= SESSIONS * TURNS * (CHUNKS + 2)
    assert hot >= 0.95 * updates


def says_and_changes(sid: str, **changes: Any) -> Work:
    def work(tx: Tx) -> None:
        tx.append(sid, [said("a")])
        tx.change_session(sid, **changes)

    return work


def choose(dice: random.Random, sid: str) -> Work:
    activity, title = dice.choice(list(Activity)), str(dice.randint(1, 9))
    works: list[Work] = [
        lambda tx: tx.append(sid, [said("a")]),
        lambda tx: tx.append(sid, [said("a"), said("b")], written=2),
        says_and_changes(sid, title=title),
        lambda tx: tx.change_session(sid, activity=activity),
        lambda tx: tx.change_session(sid, activity=activity, pinned=title == "1"),
        says_and_changes(sid, activity=activity),
        lambda tx: tx.claim(sid, "node"),
        lambda tx: tx.change_session(sid, holder=None),
    ]
    return dice.choice(works)


async def listed(store: Store, activity: Activity | None) -> list[list[tuple[str, int, int]]]:
    """All pages of a list, two sessions each."""
    pages, cursor = [], None
    while True:
        query = SessionQuery(limit=2, cursor=cursor, activity=activity)
        page, cursor = await store.read(APP, lambda view, query=query: view.sessions(query))  # type: ignore[misc]
        pages.append([(row.session_id, row.updated_at, row.head) for row in page])
        if cursor is None:
            return pages


@pytest.mark.parametrize("seed", [1, 2])
async def test_lists_are_those_of_sqlite_while_sessions_say_something(
    tmp_path: Path, database: str, seed: int
) -> None:
    """Every page, in the same order, with the same times; a list by its activity as well."""
    dice, clock = random.Random(seed), Clock()  # noqa: S311 - no secret
    stores: list[Store] = [
        await open_store(tmp_path / "data", clock),
        await PostgresStore.open(database, clock, rise=lambda: 1),
    ]
    sids = [f"s{number}" for number in range(7)]
    try:
        for store in stores:
            for sid in sids:
                await make(store, a_session(session_id=sid))
        for step in range(STEPS):
            clock.time += dice.choice([1, 10, 100, -50])
            works = [choose(dice, dice.choice(sids)) for _ in range(dice.randint(1, 4))]
            for store in stores:
                await together(store, *works)
            for activity in (None, dice.choice(list(Activity))):
                one, other = [await listed(store, activity) for store in stores]
                assert one == other, (seed, step, activity)
            sid = dice.choice(sids)
            first, second = [await store.read(APP, lambda view: view.session(sid)) for store in stores]  # noqa: B023
            assert first == second, (seed, step)
    finally:
        for store in stores:
            await store.close()


async def test_a_database_of_before_goes_on_and_a_server_of_before_writes_nothing(
    tmp_path: Path, postgres: Postgres
) -> None:
    database = await asyncio.to_thread(postgres.make_empty)
    steps = sorted((SQL / "migrations").iterdir())
    for path in steps[:YESTERDAY]:
        shutil.copy(path, tmp_path)
    claim = "UPDATE sessions SET head = 6, holder = 'old', fence = 4 WHERE session_id = 's1'"

    def begin() -> None:
        with contextlib.closing(Link(database)) as link:
            assert migrate(link, SystemClock(), folder=tmp_path) == YESTERDAY
            link.run(
                "INSERT INTO sessions (session_id, app_name, agent, cwd, created_at, updated_at,"
                " head, holder, fence, written) VALUES ('s1', $1, 'a', '/w', 1, 2000, 5, 'node', 3, 2)",
                (APP,),
            )

    await asyncio.to_thread(begin)
    async with opened(database) as store:
        row = await store.read(APP, lambda view: view.session("s1"))
        assert row is not None
        assert (row.head, row.holder, row.fence, row.written) == (5, "node", 3, 2)
        assert row.updated_at == 2_000
        with pytest.raises(asyncpg.UndefinedColumnError):
            await ask(database, claim)
        assert await store.write(APP, appends("s1", "more", fence=3)) == 6


async def test_the_head_of_a_session_is_gone_with_it(database: str) -> None:
    async with opened(database) as store:
        sid = await make(store)
        await store.write(APP, appends(sid, "a"))
        await store.write(APP, lambda tx: tx.change_session(sid, deleted_at=1))
        assert await ask(database, "SELECT count(*) FROM session_heads") == [(1,)]
        while not await store.write(APP, lambda tx: tx.purge(sid, 100)):
            pass
        assert await ask(database, "SELECT count(*) FROM session_heads") == [(0,)]
