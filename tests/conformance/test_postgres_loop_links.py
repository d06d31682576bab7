"""Connections in the loop are few, outlive who stops waiting for them, and are replaced when lost."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest

from clawdforge.stores.postgres.link import LOST
from clawdforge.stores.postgres.loop_links import MOST, LoopLinks
from clawdforge.wire.errors import Stopping
from tests.needs import needs
from tests.postgres import Postgres, run_postgres

pytestmark = needs("postgres")
OWN = "SELECT pg_backend_pid()"
SLOW = "SELECT pg_backend_pid() FROM pg_sleep(0.3)"
SLOWER = "SELECT pg_backend_pid() FROM pg_sleep(5)"
END = "SELECT pg_terminate_backend($1), pg_sleep(0.1)"


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with run_postgres() as server:
        yield server


@pytest.fixture
async def links(postgres: Postgres) -> AsyncIterator[LoopLinks]:
    links = LoopLinks(postgres.url("postgres"))
    yield links
    await links.close()


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is sent to Postgres from now on."""
    seen: list[str] = []
    fetch = asyncpg.Connection.fetch

    def noted(link: asyncpg.Connection, sql: str, *args: object) -> object:
        seen.append(sql)
        return fetch(link, sql, *args)

    monkeypatch.setattr(asyncpg.Connection, "fetch", noted)
    return seen


async def ask(links: LoopLinks, sql: str) -> int:
    ((pid, *_),) = await links.fetch(sql, ())
    return int(pid)


async def test_who_stops_waiting_leaves_the_connection_to_the_next(links: LoopLinks) -> None:
    known = set(await asyncio.gather(*(ask(links, SLOW) for _ in range(MOST))))
    asked = [asyncio.create_task(ask(links, SLOW)) for _ in range(MOST)]
    await asyncio.sleep(0.1)
    for one in asked:
        one.cancel()
    await asyncio.gather(*asked, return_exceptions=True)
    assert all(one.cancelled() for one in asked)
    assert known.issuperset([await ask(links, OWN) for _ in range(9)])


async def test_who_stops_waiting_in_line_asks_nothing(links: LoopLinks, sent: list[str]) -> None:
    asked = [asyncio.create_task(ask(links, SLOW)) for _ in range(MOST)]
    await asyncio.sleep(0)  # they are in line, or further
    late = asyncio.create_task(ask(links, "SELECT 0"))
    await asyncio.sleep(0)
    late.cancel()
    await asyncio.gather(*asked)
    assert await ask(links, OWN)
    assert sent == [*[SLOW] * MOST, OWN]


async def test_time_in_line_counts(postgres: Postgres) -> None:
    links = LoopLinks(postgres.url("postgres"), patience=0.6)
    asked = [asyncio.create_task(ask(links, SLOWER)) for _ in range(MOST + 1)]
    found = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(one) for one in found] == [TimeoutError] * (MOST + 1)
    assert TimeoutError in LOST
    await links.close()


async def test_what_took_too_long_is_not_asked_again(postgres: Postgres, sent: list[str]) -> None:
    links = LoopLinks(postgres.url("postgres"), patience=0.6)
    assert await ask(links, OWN)
    with pytest.raises(TimeoutError):
        await ask(links, SLOWER)
    await asyncio.sleep(0.2)
    await links.close()
    assert sent == [OWN, SLOWER]


async def test_a_crowd_uses_few(links: LoopLinks) -> None:
    assert len(set(await asyncio.gather(*(ask(links, OWN) for _ in range(40))))) <= MOST


async def test_those_that_were_lost_while_idle_are_replaced(links: LoopLinks, postgres: Postgres) -> None:
    lost = set(await asyncio.gather(*(ask(links, SLOW) for _ in range(MOST))))
    other = await asyncpg.connect(postgres.url("postgres"))
    for pid in lost:
        await other.fetch(END, pid)
    await other.close()
    assert lost.isdisjoint(await asyncio.gather(*(ask(links, OWN) for _ in range(9))))


async def test_a_question_that_fails_leaves_the_others_alone(links: LoopLinks) -> None:
    with pytest.raises(asyncpg.DivisionByZeroError):
        await links.fetch("SELECT 1 / $1::bigint", (0,))
    assert await ask(links, OWN)


async def test_the_end_waits_for_what_was_sent_and_tells_the_others(postgres: Postgres) -> None:
    links = LoopLinks(postgres.url("postgres"))
    asked = [asyncio.create_task(ask(links, SLOW)) for _ in range(MOST)]
    await asyncio.sleep(0.1)
    late = asyncio.create_task(ask(links, SLOW))
    await asyncio.sleep(0)
    await links.close()
    assert all(await asyncio.gather(*asked))
    for one in (late, ask(links, OWN)):
        with pytest.raises(Stopping):
            await one
