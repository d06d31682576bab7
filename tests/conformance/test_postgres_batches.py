"""Jobs that wait together are few statements on Postgres, and leave what they would leave one by one."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Iterator
from typing import Any

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.ports import LeaseLost, Tx, View
from clawdforge.stores.postgres import writer
from clawdforge.stores.postgres.link import Link
from clawdforge.stores.postgres.loop_links import LoopLinks
from clawdforge.stores.postgres.store import PostgresStore
from clawdforge.wire.errors import TurnNotFound
from clawdforge.wire.turn import TurnState
from tests.conformance.batches import Work, appends, ask, begins, ends, run_turn, together
from tests.conformance.stores.samples import (
    APP,
    NO_LIMIT,
    a_message,
    a_permission,
    a_turn,
    log_of,
    make,
    said,
)
from tests.needs import needs
from tests.postgres import Postgres, run_postgres

pytestmark = needs("postgres")
TRY_LOCK = "SELECT pg_try_advisory_lock(4710423071)"
STATEMENTS_OF_A_TURN = 4
"""That is what its two jobs take: each reads once, and writes once."""


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
async def store(database: str) -> AsyncIterator[PostgresStore]:
    store = await PostgresStore.open(database, SystemClock())
    yield store
    await store.close()


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement that any connection sends from now on: each is a round trip."""
    seen: list[str] = []

    def watch(owner: type, name: str) -> None:
        call = getattr(owner, name)

        def noted(link: Any, sql: str, *more: Any) -> Any:
            seen.append(sql)
            return call(link, sql, *more)

        monkeypatch.setattr(owner, name, noted)

    watch(LoopLinks, "fetch")
    for name in ("fetch", "fetch_while", "run", "run_many"):
        watch(Link, name)
    for name in ("MAX_BATCH_SECS", "SHARED_BATCH_SECS"):  # a busy machine makes no other batches
        monkeypatch.setattr(writer, name, 60.0)
    return seen


async def test_a_turn_is_four_statements(store: PostgresStore, sent: list[str]) -> None:
    sid = await make(store)
    for index in range(1, 4):  # the app's first message has more to do, and statements are made known
        await run_turn(store, sid, index)
    sent.clear()
    await run_turn(store, sid, 4)
    assert len(sent) == STATEMENTS_OF_A_TURN, sent


async def test_turns_that_begin_together_are_as_many_statements_as_one(
    store: PostgresStore, sent: list[str]
) -> None:
    sids = [await make(store) for _ in range(5)]
    for sid in sids:
        await run_turn(store, sid, 1)
    for index in (2, 3):  # once more when statements are known
        sent.clear()
        fences = await together(store, *map(begins, sids))
        assert all(isinstance(fence, int) for fence in fences), fences
        await together(store, *(ends(sid, index, fence) for sid, fence in zip(sids, fences, strict=True)))
    assert len(sent) == STATEMENTS_OF_A_TURN, sent
    for sid in sids:
        assert await log_of(store, sid) == list(range(1, 16))


async def test_what_many_sessions_say_is_two_statements(store: PostgresStore, sent: list[str]) -> None:
    sids = [await make(store) for _ in range(20)]
    await together(store, *(appends(sid, "warm") for sid in sids))
    sent.clear()
    heads = await together(store, *(appends(sid, "one", "two") for sid in sids))
    assert heads == [3] * len(sids)
    assert len(sent) == 2, sent
    for sid in sids:
        assert await log_of(store, sid) == [1, 2, 3]


async def test_with_a_limit_of_bytes_what_is_said_is_two_statements_too(
    store: PostgresStore, sent: list[str]
) -> None:
    sids = [await make(store) for _ in range(3)]
    work = [
        lambda tx, sid=sid: (tx.append(sid, [said("x")]), sum(tx.stored_bytes().values())) for sid in sids
    ]
    await together(store, *work)
    sent.clear()
    found = await together(store, *work)
    assert len(sent) == 2, sent
    assert found[2][1] == sum((await store.read(APP, lambda v: v.stored_bytes())).values())


async def test_one_that_lost_its_lease_fails_alone(store: PostgresStore) -> None:
    sids = [await make(store) for _ in range(3)]
    fences = [await store.write(APP, lambda tx, sid=sid: tx.claim(sid, "node")) for sid in sids]  # type: ignore[misc]
    works = [appends(sid, "x", fence=fence) for sid, fence in zip(sids, fences, strict=True)]
    works[1] = appends(sids[1], "late", fence=fences[1] - 1)
    found = await together(store, *works)
    assert [type(one) for one in found] == [int, LeaseLost, int]
    assert [await log_of(store, sid) for sid in sids] == [[1], [], [1]]


async def test_a_read_of_one_thing_is_one_statement(store: PostgresStore, sent: list[str]) -> None:
    sid = await make(store)
    sent.clear()
    await store.read(APP, lambda v: v.count_queued(sid))
    await store.read(APP, lambda v: (v.session(sid), v.app_row()))
    assert len(sent) == 2, sent


async def test_a_read_of_many_things_is_of_one_state(store: PostgresStore, sent: list[str]) -> None:
    sid = await make(store)
    seen: list[int] = []
    for _ in range(3):
        await store.write(APP, appends(sid, "x"))

    def read(view: Any) -> tuple[int, int]:
        seen.append(1)
        events = view.events(sid, after=0, limit=9, max_bytes=NO_LIMIT)
        return view.session(sid).head, len(events)

    assert await store.read(APP, read) == (3, 3)
    assert any("REPEATABLE READ" in sql for sql in sent)
    assert len(seen) == 3, "it was asked what it asks first, given that, and run again in a transaction"


async def test_a_job_sees_what_it_and_those_before_it_wrote(store: PostgresStore) -> None:
    sid = await make(store)

    def first(tx: Tx) -> Any:
        tx.add_turn(a_turn(sid, 1))
        tx.change_turn(sid, 1, state=TurnState.RUNNING)
        head = tx.append(sid, [said("one", 1)])
        tx.change_session(sid, title="told")
        seq = tx.add_message(a_message(sid, "first", turn=1))
        row = tx.session(sid)
        assert row is not None
        return head, seq, row.head, row.title, row.last_message, row.message_count

    def second(tx: Tx) -> Any:
        row, turn = tx.session(sid), tx.active_turn(sid)
        assert row is not None
        assert turn is not None
        seq = tx.add_message(a_message(sid, "second", turn=1))
        tx.change_turn(sid, 1, state=TurnState.ENDED)
        return row.title, row.last_message, turn.turn_index, seq, tx.active_turn(sid), tx.count_queued(sid)

    for _ in range(2):  # the app's first message needs the plain way
        await store.write(APP, lambda tx: tx.add_message(a_message(sid, "before")))
    found = await together(store, first, second)
    assert found == [(1, 3, 1, "told", 3, 3), ("told", 3, 1, 4, None, 0)]


async def test_what_an_app_has_stored_is_counted_before_it_is_written(
    store: PostgresStore, sent: list[str]
) -> None:
    """Whoever appends looks at that each time, where an app has a limit."""
    sids = [await make(store) for _ in range(3)]

    def work(session_id: str) -> Work:
        def append(tx: Tx) -> dict[Any, int]:
            assert tx.session(session_id)
            tx.append(session_id, [said("a\0b Ä")])
            tx.add_message(a_message(session_id, "a\0b Ä \ufdd0", thinking="ß", tool_calls=({"a": "Ä"},)))
            return dict(tx.stored_bytes())

        return append

    for _ in range(2):
        await together(store, *map(work, sids))
    sent.clear()
    found = await together(store, *map(work, sids))
    assert len(sent) == 2, sent
    assert found[0] != found[1] != found[2]
    assert found[2] == await store.read(APP, lambda v: v.stored_bytes())


@pytest.mark.parametrize("ask_for", ["count_brought", "stored_bytes"])
async def test_a_question_is_asked_again_after_what_changes_its_answer(
    store: PostgresStore, ask_for: str
) -> None:
    sid = await make(store)
    for _ in range(3):
        await store.write(APP, lambda tx: tx.add_message(a_message(sid, "said")))

    def read(view: View) -> int:
        return view.count_brought(sid) if ask_for == "count_brought" else sum(view.stored_bytes().values())

    def work(tx: Tx) -> tuple[int, int]:
        before = read(tx)
        tx.bring(sid, after=0, last=9, turns=[])
        return before, read(tx)

    before, after = await store.write(APP, work)
    assert before < after
    assert after == await store.read(APP, read)


async def test_a_job_that_fails_leaves_nothing(store: PostgresStore) -> None:
    one, other = await make(store), await make(store)
    await store.write(APP, lambda tx: tx.add_message(a_message(one, "before")))

    def fails(tx: Tx) -> None:
        tx.append(one, [said("lost")])
        tx.add_message(a_message(one, "lost"))
        tx.audit(one, "lost", 1, {})
        tx.change_session(one, title="lost")
        raise ValueError("mine")

    def writes(session_id: str) -> Work:
        def work(tx: Tx) -> tuple[int, int]:
            tx.audit(session_id, "kept", 1, {})
            return tx.append(session_id, [said("kept")]), tx.add_message(a_message(session_id, "kept"))

        return work

    found = await together(store, writes(other), fails, writes(one))
    assert found[0] == (1, 1)
    assert isinstance(found[1], ValueError)
    assert found[2] == (1, 2)
    row = await store.read(APP, lambda v: v.session(one))
    assert row is not None
    assert (row.head, row.title, row.message_count) == (1, "", 2)
    entries = await store.read_system(lambda v: v.audit(after=0, limit=9))
    assert [entry.event for entry in entries] == ["kept", "kept"]


async def test_who_breaks_a_rule_of_the_tables_fails_alone(store: PostgresStore) -> None:
    sid, other = await make(store), await make(store)
    await store.write(APP, lambda tx: tx.add_turn(a_turn(sid, 1)))
    found = await together(
        store,
        appends(other, "before"),
        lambda tx: tx.add_turn(a_turn(sid, 1, prompt="twice")),
        lambda tx: tx.change_turn(sid, 7, state=TurnState.ENDED),
        appends(sid, "after"),
    )
    assert [type(one).__name__ for one in found] == ["int", "UniqueViolationError", "TurnNotFound", "int"]
    assert await log_of(store, sid) == await log_of(store, other) == [1]
    with pytest.raises(TurnNotFound):
        await store.write(APP, lambda tx: tx.change_turn(sid, 8, cut=True))
    assert await store.write(APP, appends(sid, "more")) == 2


async def test_values_of_any_size_and_with_any_character(store: PostgresStore) -> None:
    sid = await make(store)
    long, odd = "x" * 5_000_000, "a\0b \ufdd0 Ä"

    def work(tx: Tx) -> None:
        tx.append(sid, [said(long), said(odd), said("")])
        tx.add_turn(a_turn(sid, 1, prompt=odd))
        tx.add_message(a_message(sid, odd + long[:100_000]))
        tx.add_permission(a_permission(sid, "p1", request={"odd": odd}))

    assert await together(store, work, appends(sid, odd)) == [None, 4]
    assert await log_of(store, sid) == [1, 2, 3, 4]
    turn = await store.read(APP, lambda v: v.turn(sid, 1))
    assert turn is not None
    assert turn.prompt == odd
    (message,) = await store.read(APP, lambda v: v.messages(sid))
    assert message.content == odd + long[:100_000]
    with pytest.raises(UnicodeEncodeError):
        await store.write(APP, lambda tx: tx.change_session(sid, title="\ud800"))
    with pytest.raises(OverflowError):
        await store.write(APP, lambda tx: tx.add_turn(a_turn(sid, 2**70)))
    assert await log_of(store, sid) == [1, 2, 3, 4]


async def test_what_was_read_under_a_lock_that_was_lost_is_not_written(store: PostgresStore) -> None:
    sid = await make(store)
    await store.write(APP, appends(sid, "one"))
    runs: list[int] = []

    def work(tx: Tx) -> int:
        row = tx.session(sid)
        assert row is not None
        runs.append(row.head)
        if len(runs) == 1:
            tx._unwritten.plain._db.link.run("SELECT pg_advisory_unlock_all()")  # type: ignore[attr-defined]
        return tx.append(sid, [said("two")])

    assert await store.write(APP, work) == 2
    assert runs == [1, 1]
    assert await log_of(store, sid) == [1, 2]


async def test_who_stops_between_reading_and_writing_is_not_waited_for(
    store: PostgresStore, database: str
) -> None:
    """Postgres ends a connection that holds the lock and says nothing; nobody else gets it before."""
    sid = await make(store)
    found: list[Any] = []

    def work(tx: Tx) -> None:
        tx.session(sid)
        link = tx._unwritten.plain._db.link  # type: ignore[attr-defined]
        found.extend(link.fetch("SHOW idle_session_timeout"))
        with contextlib.closing(Link(database)) as other:
            found.extend(other.fetch(TRY_LOCK))

    await store.write(APP, work)
    await store.write(APP, appends(sid, "x"))
    await store.write(
        APP,
        lambda tx: found.extend(tx._unwritten.plain._db.link.fetch("SHOW idle_session_timeout")),  # type: ignore[attr-defined]
    )
    found.extend(await ask(database, TRY_LOCK))
    assert found == [("5s",), (False,), ("0",), (True,)]


async def test_two_servers_number_what_they_append_to_one_log(store: PostgresStore, database: str) -> None:
    sid = await make(store)
    second = await PostgresStore.open(database, SystemClock())
    try:
        each = [one.write(APP, appends(sid, "x")) for _ in range(40) for one in (store, second)]
        assert sorted(await asyncio.gather(*each)) == list(range(1, 81))
        assert await log_of(store, sid) == list(range(1, 81))
    finally:
        await second.close()


async def test_a_crowd_of_one_app_keeps_nobody_waiting_for_all_of_it(store: PostgresStore) -> None:
    """A beat that waited for hundreds of jobs cost a node its lease."""
    order: list[str] = []

    async def note(who: str, done: Awaitable[Any]) -> None:
        await done
        order.append(who)

    def slow(tx: Tx) -> None:  # no ordinary job: each is a transaction's worth of statements
        for number in range(20):
            tx.find_blobs([f"{number}"])
            tx.drop_blob_data([])

    crowd = [asyncio.ensure_future(note("crowd", store.write(APP, slow))) for _ in range(250)]
    await crowd[0]
    others = [
        asyncio.ensure_future(note("system", store.write_system(lambda tx: tx.beat("n")))),
        asyncio.ensure_future(note("other", store.write("other", lambda tx: tx.find_blobs([])))),
    ]
    await asyncio.gather(*crowd, *others)
    assert max(order.index("system"), order.index("other")) < 3 * writer.MOST_JOBS


async def test_without_the_right_to_make_functions_it_works_all_the_same(database: str) -> None:
    name = database.partition("?")[0].rpartition("/")[2]
    await ask(
        database,
        f"REVOKE TEMPORARY ON DATABASE {name} FROM PUBLIC",
        f"CREATE ROLE {name} LOGIN",
        f"GRANT CREATE ON SCHEMA public TO {name}",
        f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {name}",
        f"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {name}",
    )
    store = await PostgresStore.open(database.replace("//postgres@", f"//{name}@"), SystemClock())
    try:
        sid = await make(store)
        assert await together(store, appends(sid, "one"), appends(sid, "two")) == [1, 2]
        assert await store.write(APP, appends(sid, "three")) == 3
    finally:
        await store.close()
        await ask(database, f"DROP OWNED BY {name}", f"DROP ROLE {name}")
