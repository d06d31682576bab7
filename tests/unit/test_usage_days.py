"""What turns have used, day by day: which day and column, bounds, pages, and what was there before."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from clawdforge.core.clock import SECOND, SystemClock
from clawdforge.core.models.rows import TurnRow
from clawdforge.core.models.usage import DayUsage, UsageQuery, UsageSum
from clawdforge.core.ports import Tx
from clawdforge.core.rules.turns import Ending, finish
from clawdforge.core.rules.usage import MAX_COUNT
from clawdforge.core.rules.usage_days import OF_ALL, OF_AN_APP, count_turn, read_query
from clawdforge.stores import open_store
from clawdforge.stores.sqlite.migrations import list_migrations
from clawdforge.stores.sqlite.store import SqliteStore
from clawdforge.wire.base import Json, from_iso
from clawdforge.wire.errors import InvalidRequest
from clawdforge.wire.turn import Outcome, TurnState
from clawdforge.wire.usage import UsageBy
from tests.conformance.stores.samples import APP, a_session, a_turn, make

NOW = from_iso("2026-11-16T23:59:59.999999Z")
EVERYTHING = UsageQuery(by=frozenset(UsageBy), first="0001-01-01", last="9999-12-31", limit=1000)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await open_store(tmp_path / "data", SystemClock())
    yield opened
    await opened.close()


def tell(taken: int = 0, given: int = 0, cached: int = 0, **more: object) -> Json:
    return {"input_tokens": taken, "output_tokens": given, "cached_tokens": cached, "cost_usd": None, **more}


async def sums(store: SqliteStore, query: UsageQuery = EVERYTHING) -> list[UsageSum]:
    rows, cursor = await store.read(APP, lambda view: view.usage_sums(query))
    return rows if cursor is None else rows + await sums(store, replace(query, cursor=cursor))


async def add(store: SqliteStore, *rows: DayUsage) -> None:
    def work(tx: Tx) -> None:
        for row in rows:
            tx.add_usage(row)

    await store.write(APP, work)


def test_a_day_is_one_of_utc_to_its_last_moment() -> None:
    session = a_session(agent="demo")
    assert count_turn(session, None, None, NOW).day == "2026-11-16"
    assert count_turn(session, None, None, NOW + 1).day == "2026-11-17"


def test_what_was_reported_and_what_was_estimated_have_numbers_of_their_own() -> None:
    session = a_session(agent="demo", model="big")
    told = tell(5, 6, 7, cost_usd=0.5)
    expected = DayUsage(day="2026-11-16", agent="demo", model="big", input_tokens=5, output_tokens=6)
    assert count_turn(session, told, told, NOW) == replace(expected, cached_tokens=7, cost_usd=0.5)
    computed = tell(5, 6, cost_usd=0.5, cost_estimated=True, estimated=True)
    assert count_turn(session, computed, computed, NOW) == replace(expected, estimated_cost=0.5)
    guessed = tell(5, 6, estimated=True)
    expected = DayUsage(day="2026-11-16", agent="demo", model="big", estimated_input=5, estimated_output=6)
    assert count_turn(session, None, guessed, NOW) == expected


def test_without_days_it_is_the_last_thirty() -> None:
    query = read_query("day", None, None, NOW, OF_AN_APP)
    assert (query.first, query.last) == ("2026-10-18", "2026-11-16")
    assert read_query(" model,day ", None, None, NOW, OF_AN_APP).by == {UsageBy.MODEL, UsageBy.DAY}
    assert read_query("day", None, "0001-01-02", NOW, OF_AN_APP).first == "0001-01-01"


def test_a_call_has_at_most_366_days() -> None:
    assert read_query("day", "2024-01-01", "2024-12-31", NOW, OF_AN_APP).last == "2024-12-31"
    with pytest.raises(InvalidRequest, match="366 days"):
        read_query("day", "2024-01-01", "2025-01-01", NOW, OF_AN_APP)
    assert read_query("day", "2026-11-16", "2026-11-16", NOW, OF_AN_APP).first == "2026-11-16"
    with pytest.raises(InvalidRequest, match="after to"):
        read_query("day", "2026-11-16", "2026-11-15", NOW, OF_AN_APP)


@pytest.mark.parametrize("day", ["", "2026-11", "20261116", "2026-W47-1", "2026-02-30", "now"])
def test_what_is_no_day_is_refused_in_words(day: str) -> None:
    with pytest.raises(InvalidRequest, match="from is a day in UTC like"):
        read_query("day", day, None, NOW, OF_AN_APP)


@pytest.mark.parametrize("by", ["", "week", "day,", "app", "day;agent", "Day"])
def test_unknown_names_are_refused_with_the_known_ones(by: str) -> None:
    with pytest.raises(InvalidRequest, match="day, agent, model, with commas"):
        read_query(by, None, None, NOW, OF_AN_APP)
    assert read_query("app", None, None, NOW, OF_ALL).by == {UsageBy.APP}


async def test_sums_stop_at_the_largest_number(store: SqliteStore) -> None:
    most = DayUsage(day="2026-11-16", agent="a", input_tokens=MAX_COUNT - 1, cost_usd=1e308)
    await add(store, most, replace(most, input_tokens=1))
    assert [(row.input_tokens, row.turns) for row in await sums(store)] == [(MAX_COUNT, 2)]
    await add(store, most, replace(most, day="2026-11-17"), replace(most, day="2026-11-18"))
    (row,) = await sums(store, replace(EVERYTHING, by=frozenset({UsageBy.AGENT})))
    assert (row.input_tokens, row.turns, row.day) == (MAX_COUNT, 5, "")
    assert row.cost_usd is not None
    assert row.cost_usd < float("inf")


async def test_pages_have_every_row_once_whatever_the_names_are(store: SqliteStore) -> None:
    names = ["", "a", "é", "'; --", "\x7f", "😀"]
    rows = [DayUsage(day=f"2026-11-{n:02}", agent=one or "x", model=one) for n in (1, 2) for one in names]
    await add(store, *rows, *rows)
    whole = await sums(store)
    assert len(whole) == len(rows)
    assert {row.turns for row in whole} == {2}
    for limit in (1, len(rows) - 1, len(rows), len(rows) + 1):
        assert await sums(store, replace(EVERYTHING, limit=limit)) == whole
    by_model = replace(EVERYTHING, by=frozenset({UsageBy.MODEL}), limit=1)
    assert [row.model for row in await sums(store, by_model)] == sorted(names, key=str.encode)
    one_day = replace(EVERYTHING, first="2026-11-02", last="2026-11-02")
    assert {row.day for row in await sums(store, one_day)} == {"2026-11-02"}


async def test_a_cursor_that_is_none_is_refused(store: SqliteStore) -> None:
    with pytest.raises(InvalidRequest, match="cursor"):
        await sums(store, replace(EVERYTHING, cursor="WzEsICJhIl0"))


async def test_a_turn_is_counted_once_and_stays_when_its_session_is_purged(store: SqliteStore) -> None:
    sid = await make(store, a_session(agent="demo"))
    row: TurnRow = a_turn(sid, 1, state=TurnState.RUNNING, started_at=NOW - SECOND, first_seq=1)
    waiting = a_turn(sid, 2)
    ending = Ending(outcome=Outcome.COMPLETED, usage=tell(5, 6))
    for turn in (row, waiting):
        await store.write(APP, lambda tx, t=turn: tx.add_turn(t))  # type: ignore[misc]
    for _ in range(2):
        await store.write(APP, lambda tx: finish(tx, sid, 1, ending, NOW))
    await store.write(APP, lambda tx: finish(tx, sid, 2, Ending(outcome=Outcome.CANCELLED), NOW))
    before = await sums(store)
    assert [(one.day, one.turns, one.input_tokens) for one in before] == [("2026-11-16", 1, 5)]
    await store.write(APP, lambda tx: tx.change_session(sid, deleted_at=NOW))
    while not await store.write(APP, lambda tx: tx.purge(sid, 100)):
        pass
    assert await sums(store) == before


async def test_turns_of_an_older_database_are_counted_when_it_is_upgraded(tmp_path: Path) -> None:
    """Forked copies are not, nor what never began; an agent's numbers and ours are told apart."""
    path = next(path for _, path in list_migrations() if "usage_days" in path.name)
    fill = "INSERT INTO usage_days" + path.read_text().partition("INSERT INTO usage_days")[2]
    database = tmp_path / "data" / "forge.db"
    store = await open_store(database.parent, SystemClock())
    sid = await make(store, a_session(agent="demo", model="big"))
    usages: list[Json | None] = [
        tell(5, 6, 7, cost_usd=0.5),
        tell(1, 2, estimated=True, cost_estimated=False),
        tell(10, 20, estimated=True, cost_estimated=True, cost_usd=0.25),
        tell(MAX_COUNT, 0, estimated=True, counter={"input_tokens": 9}),
        None,
    ]
    ended = a_turn(sid, 1, state=TurnState.ENDED, started_at=1, ended_at=NOW, first_seq=1)

    def write(tx: Tx) -> None:
        for index, usage in enumerate(usages, 1):
            tx.add_turn(replace(ended, turn_index=index, usage=usage))
        tx.add_turn(replace(ended, turn_index=8, first_seq=None, usage=usages[0]))
        tx.add_turn(replace(ended, turn_index=9, started_at=None))

    await store.write(APP, write)
    await store.close()
    connection = apsw.Connection(str(database))
    connection.execute(fill)
    connection.close()
    store = await open_store(database.parent, SystemClock())
    (row,) = await sums(store)
    await store.close()
    assert (row.day, row.agent, row.model, row.turns) == ("2026-11-16", "demo", "big", 5)
    assert (row.input_tokens, row.output_tokens, row.cached_tokens) == (MAX_COUNT, 26, 7)
    assert (row.estimated_input, row.estimated_output) == (1, 2)
    assert (row.cost_usd, row.estimated_cost) == (0.5, 0.25)


async def test_days_before_one_are_forgotten_some_at_a_time_and_only_of_that_app(store: SqliteStore) -> None:
    days = [DayUsage(day=f"2023-01-{n:02}", agent="demo", model="m") for n in range(1, 11)]
    await add(store, *days, DayUsage(day="2023-01-11", agent="demo", model="m"))
    await store.write("other", lambda tx: tx.add_usage(days[0]))
    found = await store.read_system(lambda view: view.apps_with_old_usage("2023-01-11"))
    assert APP in found
    steps = [await store.write(APP, lambda tx: tx.forget_usage("2023-01-11", 4)) for _ in range(3)]
    assert steps == [False, False, True]
    assert [row.day for row in await sums(store)] == ["2023-01-11"]
    assert APP not in await store.read_system(lambda view: view.apps_with_old_usage("2023-01-11"))
    assert (await store.read("other", lambda view: view.usage_sums(EVERYTHING)))[0]
