"""The statements: bound to an app, carried by an index, flat in the number of sessions."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clawdforge.core.clock import SystemClock
from clawdforge.core.models.events import draft
from clawdforge.core.models.rows import MessageRow, SessionQuery, SessionRow, TurnRow
from clawdforge.core.ports import Tx
from clawdforge.core.rules.paging import Place, read_messages
from clawdforge.stores import open_store
from clawdforge.stores.sqlite import packing
from clawdforge.stores.sqlite.connection import open_reader
from clawdforge.stores.sqlite.queries import Queries
from clawdforge.stores.sqlite.search import build_match
from clawdforge.stores.sqlite.store import SqliteStore
from clawdforge.wire.event import EventType
from clawdforge.wire.session import Activity
from clawdforge.wire.turn import TurnState
from tests.conformance.stores.samples import a_permission, a_session

APP = "alpha"
ADMIN_ONLY = {"usage", "session_counts", "apps", "tokens", "audit_entries", "put_app", "forget_identities"}
BIG = {
    "sessions",
    "events",
    "packs",
    "messages",
    "turns",
    "permissions",
    "files",
    "session_events",
    "turn_files",
}


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await open_store(tmp_path / "data", SystemClock())
    yield opened
    await opened.close()


def scans(db: apsw.Connection, sql: str) -> list[str]:
    """Steps of the plan that walk a whole big table, or a whole index that is not a partial one."""
    names = re.findall(r":(\w+)", sql)
    plan = [row[3] for row in db.execute("EXPLAIN QUERY PLAN " + sql, dict.fromkeys(names))]
    found = [step for step in plan if step.startswith("SCAN") and step.split()[1] in BIG]
    partial = {row[0] for row in db.execute("SELECT name FROM pragma_index_list('turns') WHERE partial")}
    partial |= {row[0] for row in db.execute("SELECT name FROM pragma_index_list('sessions') WHERE partial")}
    small = partial - {"sessions_listed"}
    return [step for step in found if step.split()[-1] not in small]


async def test_every_statement_of_an_app_names_the_app(store: SqliteStore) -> None:
    queries = Queries()
    for name, sql in {**queries.view, **queries.tx, **queries.sets, **queries.packs}.items():
        assert re.search(r"\bapp_name = :app\b|\(app_name\) VALUES \(:app\)", sql), name
    assert store.health() is None


async def test_no_statement_walks_a_big_table(store: SqliteStore) -> None:
    queries = Queries()
    db = open_reader(store.path)
    statements = {
        **queries.view,
        **queries.tx,
        **queries.sets,
        **queries.packs,
        **{k: v for k, v in queries.system.items() if k not in ADMIN_ONLY},
    }
    bad = {name: found for name, sql in statements.items() if (found := scans(db, sql))}
    # The ledger is read forward by its number, a page at a time.
    assert bad.pop("audit_head", []) in ([], ["SCAN session_events"])
    assert bad == {}
    db.close()


async def test_the_numbers_of_many_messages_are_read_from_indexes_alone(store: SqliteStore) -> None:
    """Else a long undo fetches every row that it cuts."""
    queries, reader = Queries(), store._reader.db
    assert reader is not None
    for name in (
        "seqs_from",
        "turns_said_from",
        "last_spoken_turn",
        "first_message_after_turn",
        "count_visible",
    ):
        sql = queries.view[name]
        names = dict.fromkeys(re.findall(r":(\w+)", sql))
        plan = [str(row[3]) for row in reader.connection.execute("EXPLAIN QUERY PLAN " + sql, names)]
        steps = [step for step in plan if " messages " in step]
        assert steps, name
        assert all("COVERING INDEX" in step for step in steps), (name, plan)


async def steps_of(store: SqliteStore, work: Any) -> int:
    """How many rows SQLite touched, counted by its virtual machine, not by a clock."""
    reader = store._reader.db
    assert reader is not None
    count = 0

    def tick() -> bool:
        nonlocal count
        count += 1
        return False

    reader.connection.set_progress_handler(tick, 1)
    await store.read(APP, work)
    reader.connection.set_progress_handler(None)
    return count


async def test_a_statement_is_prepared_once_whatever_is_bound_to_it(store: SqliteStore) -> None:
    """SQLite asks an authorizer whenever it prepares, also when it does so by itself."""
    await fill(store, 0, 30)
    reader = store._reader.db
    assert reader is not None
    asked: list[str | None] = []

    def ask(number: int) -> Any:
        sid = f"{number:06x}-session"

        def work(view: Any) -> None:
            query = SessionQuery(limit=number + 1, agent=f"{number}", prefix=sid[: number % 7], project=sid)
            for some in (query, SessionQuery(limit=number + 2), SessionQuery(limit=3, q=f"w{number}")):
                view.sessions(some)
            for show in ("visible", "all", "cut"):
                view.messages(sid, after=number, limit=number, show=show)
                view.last_messages(sid, number, show=show)
            for kept in ("visible", "all"):
                view.message_page_before(sid, before=number, limit=number, max_bytes=1000, show=kept)
                view.has_message_before(sid, number, show=kept)
                view.has_message_after(sid, number, show=kept)
            view.events(sid, after=number, limit=number, max_bytes=1000)
            view.turn_events(sid, 1, after=number, limit=number + 1, max_bytes=1000)
            view.turns(sid, after=number, limit=number)
            view.queued_turns(sid, number)
            view.last_prompts(sid, number)
            view.numbers_from(sid, number)
            view.search(f"word{number}", limit=number)
            view.permissions(sid, state=f"{number}")
            view.pending_permissions(limit=number, max_bytes=number)
            view.turn_nodes(sid, after=number, limit=number, chars=number)
            view.failed_turns(sid, after=number)
            view.seq_at(sid, number)
            view.models(number)
            view.forks_after(sid, after=number, last=number, limit=number)

        return work

    def note(_operation: int, first: str | None, *_rest: object) -> int:
        asked.append(first)
        return apsw.SQLITE_OK

    reader.connection.authorizer = note
    await store.read(APP, ask(1))
    assert asked
    own = len(asked)
    for number in range(2, 30):
        await store.read(APP, ask(number))
    fresh = [table for table in asked[own:] if table is not None and "_fts" not in table]
    reader.connection.authorizer = None
    assert fresh == []  # the full-text index prepares statements of its own


async def fill(store: SqliteStore, first: int, last: int) -> None:
    def work(tx: Tx) -> None:
        for n in range(first, last):
            sid = f"{n:06x}-session"
            tx.add_session(
                SessionRow(app_name=APP, session_id=sid, agent="demo", cwd="/w", created_at=n, updated_at=n)
            )
            tx.add_message(MessageRow(session_id=sid, role="user", content=f"word{n % 7} x", ts=n))
            tx.add_turn(
                TurnRow(
                    session_id=sid, turn_index=1, state=TurnState.ENDED, prompt="p", queued_at=n, first_seq=1
                )
            )
            tx.append(sid, [draft(EventType.TEXT, 1, 1, {"content": "x"})])
            tx.add_permission(a_permission(sid, f"p-{n}", state="decided"))

    await store.write(APP, work)


async def test_cost_is_flat_in_the_number_of_sessions(store: SqliteStore) -> None:
    calls = {
        "list": lambda v: v.sessions(SessionQuery(limit=10)),
        "open": lambda v: v.sessions(SessionQuery(limit=10, include_closed=False)),
        "prefix": lambda v: v.sessions(SessionQuery(prefix="000001-s")),
        "failed": lambda v: v.sessions(SessionQuery(limit=10, activity=Activity.FAILED)),
        "idle": lambda v: v.sessions(SessionQuery(limit=10, activity=Activity.IDLE)),
        "running": lambda v: v.sessions(SessionQuery(limit=10, activity=Activity.RUNNING)),
        "a page of waiting": lambda v: v.sessions(
            SessionQuery(limit=10, activity=Activity.WAITING, cursor="WzEsICJhIl0", include_closed=False)
        ),
        "session": lambda v: v.session("000001-session"),
        "events": lambda v: v.events("000001-session", after=0, limit=10, max_bytes=1000),
        "turn_events": lambda v: v.turn_events("000001-session", 1, after=0, limit=10, max_bytes=1000),
        "messages": lambda v: v.messages("000001-session"),
        "in_flight": lambda v: v.turns_in_flight(),
        "pending": lambda v: v.pending_permissions(limit=10, max_bytes=1000),
        "forks": lambda v: v.forks_after("000001-session", after=0, last=9, limit=10),
    }
    await fill(store, 0, 50)
    small = {name: await steps_of(store, call) for name, call in calls.items()}
    await fill(store, 50, 3000)
    large = {name: await steps_of(store, call) for name, call in calls.items()}
    for name in calls:
        assert large[name] <= small[name] * 1.2 + 2, (name, small, large)


async def test_cost_is_flat_in_the_length_of_a_history(store: SqliteStore) -> None:
    await fill(store, 0, 1)
    sid = "000000-session"
    event = draft(EventType.TEXT, 1, 1, {"content": "x"})
    calls = {
        "page": lambda v: v.events(sid, after=v.session(sid).head - 10, limit=10, max_bytes=10**6),
        "last": lambda v: v.last_messages(sid, 5),
        "tail": lambda v: v.message_page_before(sid, before=None, limit=5, max_bytes=10**6, show="visible"),
        "tail of all": lambda v: v.message_page_before(
            sid, before=None, limit=5, max_bytes=10**6, show="all"
        ),
        "around": lambda v: read_messages(
            v, sid, Place("around", v.session(sid).last_message // 2), 6, "all"
        ),
        "neighbours": lambda v: [
            has(sid, v.session(sid).last_message // 2, show=show)
            for has in (v.has_message_before, v.has_message_after)
            for show in ("visible", "all")
        ],
        "a page": lambda v: v.messages(sid, after=v.session(sid).last_message - 10, limit=5),
        "of a fork": lambda v: v.last_of_fork(sid, v.session(sid).last_turn + 1),
        "numbers": lambda v: v.numbers_from(sid, v.session(sid).last_message - 3),
        "by role": lambda v: v.last_message(sid, "user"),
        "tree": lambda v: v.turn_nodes(sid, after=v.session(sid).last_turn - 10, limit=5, chars=9),
        "by key": lambda v: v.turn_by_key(sid, "k"),
        "queue": lambda v: (v.queued_turns(sid), v.active_turn(sid)),
    }

    def grow(tx: Tx, turns: int, events: int) -> None:
        row = tx.session(sid)
        assert row is not None
        for n in range(row.last_turn + 2, row.last_turn + 2 + turns):
            tx.add_turn(TurnRow(session_id=sid, turn_index=n, state=TurnState.ENDED, prompt="p", queued_at=1))
            tx.add_message(MessageRow(session_id=sid, role="user", content="a", ts=1, turn=n))
        tx.change_session(sid, last_turn=row.last_turn + turns)
        tx.append(sid, [event] * events)

    await store.write(APP, lambda tx: grow(tx, 20, 50))
    small = {name: await steps_of(store, call) for name, call in calls.items()}
    await store.write(APP, lambda tx: grow(tx, 2000, 5000))
    large = {name: await steps_of(store, call) for name, call in calls.items()}
    for name in calls:
        assert large[name] <= small[name] * 1.2 + 2, (name, small, large)
    numbers = await store.read(APP, lambda v: v.numbers_from(sid, 10))
    await store.write(APP, lambda tx: tx.hide_messages(sid, *numbers))
    assert not await store.read(APP, lambda v: v.has_finished_changes(sid))
    for name in ("tail", "tail of all"):
        assert await steps_of(store, calls[name]) <= small[name] * 1.2 + 2, "what was cut is not walked"
    await store.write(APP, lambda tx: tx.show_messages(sid, *numbers))
    await store.write(APP, lambda tx: tx.archive_messages(sid))
    assert not await store.read(APP, lambda v: v.has_finished_changes(sid))
    assert await steps_of(store, calls["tail"]) <= small["tail"] * 1.2 + 2, "nor what was archived"


async def test_cost_is_flat_in_the_number_of_packs(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page begins at its pack, and does not walk those before it or behind it."""
    monkeypatch.setattr(packing, "MAX_EVENTS", 10)
    await fill(store, 0, 1)
    sid = "000000-session"
    event = draft(EventType.TEXT, 1, 1, {"content": "x"})
    calls = {
        "first": lambda v: v.events(sid, after=0, limit=5, max_bytes=10**6),
        "last": lambda v: v.events(sid, after=v.session(sid).head - 4, limit=5, max_bytes=10**6),
        "end": lambda v: v.events(sid, after=v.session(sid).head, limit=5, max_bytes=10**6),
        "turn": lambda v: v.turn_events(sid, 1, after=v.session(sid).head - 4, limit=5, max_bytes=10**6),
        "brought": lambda v: v.count_brought(sid),
        "below": lambda v: v._pages.last_below(sid, 1),
    }
    costs = []
    for head in (41, 2001):
        more = head - await store.read(APP, lambda v: v.session(sid).head)  # type: ignore[union-attr]
        await store.write(APP, lambda tx, more=more: tx.append(sid, [event] * more))  # type: ignore[misc]
        while await store.pack(APP, sid, head):
            pass
        costs.append({name: await steps_of(store, call) for name, call in calls.items()})
    for name in calls:
        assert costs[1][name] <= costs[0][name] * 1.2 + 2, (name, costs)


@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    database=None,
)
@given(q=st.text(max_size=40) | st.text(alphabet='ab"*^:(){}-+ ANDORNEAT\0', max_size=40))
def test_no_text_breaks_the_search(q: str) -> None:
    db = apsw.Connection(":memory:")
    db.execute("CREATE VIRTUAL TABLE t USING fts5 (content, tokenize = 'unicode61 remove_diacritics 2')")
    db.execute("INSERT INTO t VALUES ('some words')")
    match = build_match(q)
    if match is not None:
        db.execute("SELECT count(*) FROM t WHERE t MATCH ?", (match,)).fetchall()
    db.close()


async def test_no_cursor_outlives_a_read(store: SqliteStore) -> None:
    """Whoever kept one would keep every later reader in the state of that moment."""
    sql, kept = "SELECT session_id FROM sessions", list[Any]()

    def add(tx: Tx) -> None:
        tx.add_session(a_session())

    for _ in range(3):
        await store.write(APP, add)
    rows = store._reader.read(lambda db: db.rows(sql, {}))
    assert isinstance(rows, list)
    reader = store._reader.db
    assert reader is not None
    store._reader.read(lambda db: kept.append(iter(db.connection.execute(sql))) or next(kept[0]))  # type: ignore[func-returns-value]
    await store.write(APP, add)
    assert len(store._reader.read(lambda db: db.rows(sql, {}))) == len(rows) + 1
    assert store._reader.db is not reader
    assert store._reader.read(lambda db: db.row(sql, {})) is not None
    assert (
        store._reader.read(lambda db: db.row(sql, {}) and db.connection.txn_state()) == apsw.SQLITE_TXN_READ
    )
