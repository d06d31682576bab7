"""A server that stops in the middle of a statement does not keep all others from writing for ever."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Final

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.stores.postgres.link import Link
from clawdforge.stores.postgres.relief import END, STUCK
from clawdforge.stores.postgres.store import PAUSE_PART, PostgresStore
from clawdforge.stores.postgres.writer import BEGIN
from tests.api.harness import until
from tests.conformance.stores.samples import APP, make, said
from tests.needs import needs
from tests.postgres import Postgres, run_postgres

pytestmark = needs("postgres")
LEASE: Final = 3.0
PAUSE: Final = PAUSE_PART * LEASE
STOPS: Final = """
import asyncio, os, signal, sys, asyncpg

async def main():
    settings = {"idle_in_transaction_session_timeout": "1200ms"}
    link = await asyncpg.connect(sys.argv[1], server_settings=settings)
    await link.execute(sys.argv[2])
    asking = asyncio.ensure_future(link.fetch(sys.argv[3]))
    for _ in range(2):  # then the statement has been sent to be read, and not yet to be run
        await asyncio.sleep(float(sys.argv[4]))
    os.kill(os.getpid(), signal.SIGSTOP)
    await asking
    await link.execute("SELECT pg_sleep(60)")

asyncio.run(main())
"""
LARGE: Final = "SELECT repeat('x', 1000000) FROM generate_series(1, 400)"
"""Its answer takes longer than the moment after which who asked is stopped."""


ASLEEP: Final = "SELECT 1 FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'PgSleep'"


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with run_postgres() as server:
        yield server


@pytest.fixture
def database(postgres: Postgres) -> Iterator[str]:
    url = postgres.make_database()
    yield url
    postgres.drop_database(url)


@contextmanager
def stopped(database: str, then: str, secs: float = 0.0) -> Iterator[int]:
    """A program that writes as a server does, and for `secs` has been stopped while it asks for `then`."""
    moment = "0.05" if then is LARGE else "0"
    with subprocess.Popen([sys.executable, "-c", STOPS, database, BEGIN, then, moment]) as program:
        try:
            with closing(Link(database)) as link:
                until(lambda: link.fetch(STUCK, (secs, 0)), "a program that is stopped with the lock")
            yield program.pid
        finally:
            program.kill()


@pytest.mark.parametrize("then", ["SELECT 1 AS new", LARGE], ids=["half sent", "not taken"])
async def test_others_write_when_one_stopped_in_the_middle_of_a_statement(database: str, then: str) -> None:
    store = await PostgresStore.open(database, SystemClock(), lease=LEASE)
    with ExitStack() as stack:
        session = await make(store)
        await asyncio.to_thread(stack.enter_context, stopped(database, then))
        async with asyncio.timeout(10 * PAUSE):
            await store.write(APP, lambda tx: tx.append(session, [said("here")]))
    await store.close()


async def test_a_server_starts_beside_one_that_stopped_with_the_lock(database: str) -> None:
    await (await PostgresStore.open(database, SystemClock(), lease=LEASE)).close()
    with ExitStack() as stack:
        await asyncio.to_thread(stack.enter_context, stopped(database, "SELECT 1 AS new", PAUSE))
        async with asyncio.timeout(10 * PAUSE):
            await (await PostgresStore.open(database, SystemClock(), lease=LEASE)).close()


def test_who_goes_on_is_left_alone(database: str) -> None:
    """It was slow for a moment, and is at its next statement when it is looked at again."""
    with stopped(database, "SELECT 1 AS new") as pid, closing(Link(database)) as link:
        [(backend, since)] = link.fetch(STUCK, (0.0, 0))
        os.kill(pid, signal.SIGCONT)
        until(lambda: link.fetch(ASLEEP, (backend,)), "its next statement")
        assert link.fetch(END, (backend, since)) == []
        assert link.fetch(ASLEEP, (backend,))


def test_a_server_spares_its_own_connection(database: str) -> None:
    """It is alive, or nobody would look."""
    with stopped(database, "SELECT 1 AS new"), closing(Link(database)) as link:
        [(backend, _)] = link.fetch(STUCK, (0.0, 0))
        assert link.fetch(STUCK, (0.0, backend)) == []
