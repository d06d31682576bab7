"""A call of a connection to Postgres waits for its answer by itself, and leaves the rest to an event loop."""

import contextlib
import time
from collections.abc import Iterator
from functools import partial

import asyncpg
import pytest

from clawdforge.stores.postgres.call_loop import CallLoop
from clawdforge.stores.postgres.link import ALL_ERRORS, LOST, Link
from tests.needs import needs
from tests.postgres import Postgres, run_postgres

pytestmark = needs("postgres")
LARGE = 3_000_000
WITHIN_SECS = 20.0


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with run_postgres() as server:
        yield server


@pytest.fixture
def link(postgres: Postgres) -> Iterator[Link]:
    with contextlib.closing(Link(postgres.url("postgres"), patience=WITHIN_SECS)) as found:
        yield found


def test_a_call_takes_no_turn_of_a_loop(link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    def turn(_: CallLoop) -> None:
        raise AssertionError("a turn of the loop")

    link.fetch("SELECT $1::text", ("known",))
    monkeypatch.setattr(CallLoop, "run_forever", turn)
    assert link.fetch("SELECT $1::text", ("x",)) == [("x",)]
    assert link.fetch("SELECT $1::bigint, $2::bigint[]", (1, [2, 3])) == [(1, [2, 3])]
    assert link.run("CREATE TEMP TABLE few (one bigint); INSERT INTO few VALUES (1)") == 1
    assert link.run("UPDATE few SET one = $1", (2,)) == 1


def test_a_statement_that_fails_leaves_the_connection_as_it_was(link: Link) -> None:
    for _ in range(3):
        with pytest.raises(asyncpg.DivisionByZeroError):
            link.fetch("SELECT 1 / $1::bigint", (0,))
        assert link.fetch("SELECT 1") == [(1,)]


def test_what_is_large_goes_both_ways(link: Link) -> None:
    """More than a socket takes at once, and more than is read at once."""
    said = "x" * LARGE
    assert link.fetch("SELECT $1::text, length($1::text)", (said,)) == [(said, LARGE)]


def test_calls_of_both_kinds_follow_one_another(link: Link) -> None:
    link.run("CREATE TEMP TABLE mixed (one bigint)")
    link.run_many("INSERT INTO mixed VALUES ($1)", [(1,), (2,)])
    link.copy("mixed", ["one"], [(3,)])
    link.run("BEGIN")
    rows = link.fetch_while("SELECT one FROM mixed ORDER BY one", (), lambda row: row, lambda row: row[0] < 3)
    link.run("ROLLBACK")
    assert rows == [(1,), (2,)]
    assert link.fetch("SELECT count(*) FROM mixed") == [(3,)]


def test_patience_ends_and_so_does_the_connection_that_waits(postgres: Postgres) -> None:
    link = Link(postgres.url("postgres"), patience=0.3)
    begun = time.monotonic()
    with pytest.raises(TimeoutError):
        link.fetch("SELECT pg_sleep(60)")
    assert time.monotonic() - begun < WITHIN_SECS
    link.close()


def test_patience_is_counted_anew_for_each_call(postgres: Postgres) -> None:
    with contextlib.closing(Link(postgres.url("postgres"), patience=1.0)) as link:
        for _ in range(3):
            link.fetch("SELECT pg_sleep(0.5)")


@pytest.mark.parametrize("is_noticed", [True, False])
def test_a_connection_that_is_lost_is_noticed_at_once(
    postgres: Postgres, link: Link, *, is_noticed: bool
) -> None:
    """Whether its end is there before something is sent, or not."""
    lost = Link(postgres.url("postgres"), patience=WITHIN_SECS)
    ((pid,),) = lost.fetch("SELECT pg_backend_pid()")
    begun = time.monotonic()
    link.fetch("SELECT pg_terminate_backend($1, $2)", (pid, 10_000 if is_noticed else 0))
    for _ in range(2):
        with pytest.raises(LOST) as found:
            ask_until_lost(lost)
        assert not isinstance(found.value, TimeoutError)
    assert time.monotonic() - begun < WITHIN_SECS / 2
    lost.close()


def ask_until_lost(link: Link) -> None:
    """What is sent before the end comes may still be answered."""
    for _ in range(10_000):
        link.fetch("SELECT 1")


@pytest.mark.parametrize("is_whole", [False, True])
def test_after_too_long_a_wait_calls_are_answered_or_lost(postgres: Postgres, is_whole: bool) -> None:
    """They were neither: the driver waits for its cancel in a loop, and found none."""
    with contextlib.closing(Link(postgres.url("postgres"), patience=0.3)) as link:
        link.run("BEGIN")
        ask = partial(link.fetch_while, args=(), read=tuple, fits=bool) if is_whole else link.fetch
        with pytest.raises(TimeoutError):
            ask("SELECT pg_sleep(2)")
        for _ in range(2):
            with contextlib.suppress(*ALL_ERRORS):
                assert link.fetch("SELECT 1") == [(1,)]
