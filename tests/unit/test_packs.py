"""Packs: whatever lies in the log comes back byte for byte, and nothing is packed that changed meanwhile."""

import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from clawdforge.core.clock import SystemClock
from clawdforge.core.models.rows import SessionRow, TurnRow
from clawdforge.stores.sqlite import packing
from clawdforge.stores.sqlite.connection import Db
from clawdforge.stores.sqlite.migrations import migrate
from clawdforge.stores.sqlite.packs import MAX_BYTES, MAX_EVENTS, ZLIB, EventRow, pack, unpack
from clawdforge.stores.sqlite.queries import Queries
from clawdforge.stores.sqlite.tx import SqliteTx
from clawdforge.stores.sqlite.view import SqliteView
from clawdforge.wire.event import EventType
from clawdforge.wire.event_forms import Form
from clawdforge.wire.turn import TurnState

APP, SESSION = "alpha", "s1"
FEW_EVENTS, FEW_BYTES = 6, 300
KINDS = st.sampled_from([kind.value for kind in EventType])
BODIES = st.binary(max_size=120) | st.just(b'"ts":"2026-11-16T00:00:00.000000Z","content":"x"}')
EVENTS = st.tuples(KINDS, st.none() | st.integers(1, 3), st.booleans(), st.booleans(), st.booleans(), BODIES)


def make_row(seq: int, event: tuple[str, int | None, bool, bool, bool, bytes]) -> EventRow:
    kind, turn, by_agent, compact, numbered, body = event
    data = b'{"seq":%d,%b' % (seq, body) if numbered else body
    return EventRow(seq, turn, kind, int(by_agent), data, int(compact))


@pytest.fixture(scope="module")
def queries() -> Queries:
    return Queries()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Packs of a few events, so that a short log has many."""
    monkeypatch.setattr(packing, "MAX_EVENTS", FEW_EVENTS)
    monkeypatch.setattr(packing, "MAX_BYTES", FEW_BYTES)
    return iter(())


def fresh(queries: Queries, rows: list[EventRow]) -> Db:
    db = Db(apsw.Connection(":memory:"), queries)
    migrate(db.connection, SystemClock())
    tx = SqliteTx(db, APP, SystemClock())
    session = SessionRow(app_name=APP, session_id=SESSION, agent="a", cwd="/", created_at=1, updated_at=1)
    tx.add_session(replace(session, head=max(0, rows[-1].seq) if rows else 0))
    for index in (1, 2, 3):
        turn = TurnRow(
            session_id=SESSION, turn_index=index, state=TurnState.ENDED, prompt="", queued_at=1, first_seq=1
        )
        tx.add_turn(turn)
    for row in rows:
        add_row(db, row)
    return db


def add_row(db: Db, row: EventRow) -> None:
    db.connection.execute(
        "INSERT INTO events (session_id, seq, turn, type, by_agent, data, compact)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (SESSION, row.seq, row.turn, row.type, row.by_agent, row.data, row.compact),
    )


def pack_some(db: Db, through: int) -> int:
    """Until nothing is left; how many packs were written."""
    count = 0
    while (chosen := packing.choose_slice(db, APP, SESSION, through)) is not None:
        assert packing.place_pack(db, APP, chosen, chosen.pack())
        count += 1
    return count


def picture(db: Db, head: int) -> list[Any]:
    view = SqliteView(db, APP)
    found: list[Any] = [view.count_brought(SESSION)]
    for after in range(head + 2):
        for limit, size in ((1, 1), (4, 10**9), (10**6, 150), (10**6, 10**9)):
            events = view.events(SESSION, after=after, limit=limit, max_bytes=size)
            found.append(events)
            found.extend(
                view.turn_events(SESSION, n, after=after, limit=limit, max_bytes=size) for n in (1, 2)
            )
    pages = view._pages
    whole = pages.page(SESSION, after=-(2**63), limit=10**6, max_bytes=10**9)
    for first, last in ((-5, -1), (-1, 2), (2, 2), (2, 7), (3, 11), (8, head)):
        found.append(pages.page(SESSION, after=first, last=last, limit=10**6, max_bytes=10**9))
    below = [pages.last_below(SESSION, number) for number in range(-5, head + 2)]
    return [*found, whole, below]


@pytest.mark.usefixtures("small")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    events=st.lists(EVENTS, max_size=30),
    brought=st.integers(0, 4),
    cuts=st.lists(st.integers(-3, 30), max_size=4),
    late=st.lists(EVENTS, max_size=8),
)
@example(events=[("text", 1, True, True, True, b"}")] * 30, brought=0, cuts=[2, 3, 29], late=[])
@example(events=[("text", 1, True, True, True, b"x" * 291)] * 3, brought=2, cuts=[], late=[])
def test_readers_cannot_tell_what_is_packed(
    queries: Queries, events: list[Any], brought: int, cuts: list[int], late: list[Any]
) -> None:
    """Whatever the events are, wherever a reader begins, and wherever packing stopped."""
    rows = [make_row(seq, event) for seq, event in enumerate(events, 1 - brought)]
    db, plain = fresh(queries, rows), fresh(queries, rows)
    head = max(0, rows[-1].seq) if rows else 0
    before = picture(plain, head)
    for cut in sorted(cuts):
        pack_some(db, cut)
        assert picture(db, head) == before
    more = [make_row(seq, event) for seq, event in enumerate(late, head + 1)]
    for row in more:
        add_row(db, row)
        add_row(plain, row)
    pack_some(db, head + len(more))
    assert picture(db, head + len(more)) == picture(plain, head + len(more))
    (left,) = db.connection.execute("SELECT count(*), min(length(data)) FROM events")
    assert left == (0, None) or left[1] > FEW_BYTES, "only what is large is left"
    for size, count in db.connection.execute("SELECT raw_bytes, last_seq - first_seq + 1 FROM packs"):
        assert size <= FEW_BYTES
        assert count <= FEW_EVENTS
    db.connection.close()
    plain.connection.close()


def texts(count: int, size: int = 20, first: int = 1) -> list[EventRow]:
    return [make_row(seq, ("text", 1, True, True, False, b"x" * size)) for seq in range(first, first + count)]


def spans(db: Db) -> list[tuple[int, int]]:
    return list(db.connection.execute("SELECT first_seq, last_seq FROM packs ORDER BY last_seq"))


@pytest.mark.parametrize(
    ("count", "wanted"),
    [
        (MAX_EVENTS - 1, [(1, MAX_EVENTS - 1)]),
        (MAX_EVENTS, [(1, MAX_EVENTS)]),
        (MAX_EVENTS + 1, [(1, MAX_EVENTS), (MAX_EVENTS + 1, MAX_EVENTS + 1)]),
    ],
)
def test_a_pack_holds_so_many_events(queries: Queries, count: int, wanted: list[tuple[int, int]]) -> None:
    db = fresh(queries, texts(count))
    pack_some(db, count)
    assert spans(db) == wanted


@pytest.mark.parametrize(("size", "packed"), [(MAX_BYTES - 1, 3), (MAX_BYTES, 3), (MAX_BYTES + 1, 2)])
def test_a_large_event_stays_a_row(queries: Queries, size: int, packed: int) -> None:
    """Else whoever reads the events beside it reads it too, and the writer moves it."""
    rows = [*texts(1), *texts(1, size, first=2), *texts(1, first=3)]
    db = fresh(queries, rows)
    pack_some(db, 3)
    assert sum(last - first + 1 for first, last in spans(db)) == packed
    assert pack_some(db, 3) == 0
    assert picture(db, 3) == picture(fresh(queries, rows), 3)


@pytest.mark.parametrize(
    ("count", "size", "wanted"),
    [
        (MAX_EVENTS // 2, 20, 1),
        (MAX_EVENTS // 2 + 1, 20, 2),
        (2, MAX_BYTES // 4, 1),
        (2, MAX_BYTES // 4 + 1, 2),
    ],
)
def test_a_pack_that_is_at_most_half_full_takes_up_what_follows(
    queries: Queries, count: int, size: int, wanted: int
) -> None:
    db = fresh(queries, texts(count, size))
    assert pack_some(db, count) == 1
    for row in texts(3, first=count + 1):
        add_row(db, row)
    assert pack_some(db, count + 3) == 1
    assert len(spans(db)) == wanted
    assert picture(db, 3)[-2] == texts_of(count, size)


def texts_of(count: int, size: int) -> list[EventRow]:
    return [*texts(count, size), *texts(3, first=count + 1)]


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE events SET data = 'a text' WHERE seq = 3",
        "UPDATE events SET type = 'wörd' WHERE seq = 3",
        "UPDATE events SET turn = 'first' WHERE seq = 3",
        "UPDATE events SET by_agent = 0.5 WHERE seq = 3",
    ],
)
def test_what_was_edited_by_hand_stays_as_it_is(queries: Queries, edit: str) -> None:
    db, plain = fresh(queries, texts(5)), fresh(queries, texts(5))
    for each in (db, plain):
        each.connection.execute(edit)
    pack_some(db, 5)
    assert spans(db) == [(1, 2), (4, 5)]
    assert picture(db, 5)[-2] == picture(plain, 5)[-2]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE events SET data = x'00' WHERE seq = 6",
        "DELETE FROM events WHERE seq = 6",
        "DELETE FROM packs",
        "UPDATE packs SET data = x'00'",
        "UPDATE packs SET last_seq = 6",
        "UPDATE sessions SET deleted_at = 1",
        "UPDATE sessions SET app_name = 'beta'",
    ],
)
def test_nothing_is_packed_when_something_changed_meanwhile(queries: Queries, change: str) -> None:
    db = fresh(queries, texts(8))
    pack_some(db, 4)
    chosen = packing.choose_slice(db, APP, SESSION, 8)
    assert chosen is not None
    assert chosen.replaced is not None
    packed = chosen.pack()
    db.connection.execute(change)
    everything = "SELECT seq, data FROM events UNION ALL SELECT last_seq, data FROM packs ORDER BY 1, 2"
    before = list(db.connection.execute(everything))
    assert not packing.place_pack(db, APP, chosen, packed)
    assert list(db.connection.execute(everything)) == before


def test_two_who_pack_the_same_events_write_them_once(queries: Queries) -> None:
    db = fresh(queries, texts(8))
    first, second = (packing.choose_slice(db, APP, SESSION, 8) for _ in range(2))
    assert first is not None
    assert second is not None
    assert packing.place_pack(db, APP, first, first.pack())
    assert not packing.place_pack(db, APP, second, second.pack())
    assert spans(db) == [(1, 8)]


@settings(max_examples=100, deadline=None)
@given(events=st.lists(EVENTS, min_size=1, max_size=20), flip=st.integers(0, 10**6), first=st.integers(-9, 9))
def test_a_changed_byte_of_a_pack_is_noticed(events: list[Any], flip: int, first: int) -> None:
    rows = tuple(make_row(seq, event) for seq, event in enumerate(events, first))
    packed = bytearray(pack(rows))
    last = rows[-1].seq
    assert unpack(ZLIB, first, last, bytes(packed)) == rows
    packed[flip % len(packed)] ^= 0x10
    with suppress(apsw.CorruptError):
        assert unpack(ZLIB, first, last, bytes(packed)) == rows  # a bit that nobody reads, at the very end


def whole_pack(size: int) -> bytes:
    """One event of zeros, as it lies in a pack before it is compressed."""
    lists = b'[[null],["text"],[1],[1],[0],[%d]]' % size
    return len(lists).to_bytes(4, "big") + lists + bytes(size)


def test_an_event_of_a_pack_may_be_this_large() -> None:
    assert unpack(ZLIB, 1, 1, zlib.compress(whole_pack(MAX_BYTES)))[0].data == bytes(MAX_BYTES)


@pytest.mark.parametrize(
    ("codec", "last", "packed"),
    [
        (2, 1, zlib.compress(b"\0\0\0\2[]")),
        (ZLIB, 1, b""),
        (ZLIB, 1, zlib.compress(b"")),
        (ZLIB, 1, zlib.compress(b"\0\0\0\2[]")),
        (ZLIB, 1, zlib.compress(b"\0\0\0\2{}")),
        (ZLIB, 1, zlib.compress(b"\xff\xff\xff\xff")),
        (ZLIB, 2, pack(texts(3))),
        (ZLIB, 4, pack(texts(3))),
        (ZLIB, 3, pack(texts(3))[:-1]),
        (ZLIB, 1, zlib.compress(whole_pack(1 << 26))),
    ],
)
def test_what_is_no_pack_is_damaged(codec: int, last: int, packed: bytes) -> None:
    """Also one that would take all the memory there is."""
    with pytest.raises(apsw.CorruptError, match="cannot be unpacked"):
        unpack(codec, 1, last, packed)


def test_both_forms_are_made_from_a_pack_as_from_rows(queries: Queries) -> None:
    nested = b'{"seq":1,"ts":"2026-11-15T23:40:21.934393Z","turn":1,"type":"text","jsonrpc":"2.0","method":'
    nested += b'"session/update","params":{"sessionUpdate":"agent_message_chunk","content":{"type":"text",'
    nested += b'"text":"hello"},"sessionId":"f","update":{"sessionUpdate":"agent_message_chunk","content":'
    nested += b'{"type":"text","text":"hello"}}},"content":"hello"}'
    compact = b'{"seq":2,"ts":"2026-11-15T23:40:21.934393Z","turn":1,"type":"text","content":"hello"}'
    rows = [EventRow(1, 1, "text", 1, nested, 0), EventRow(2, 1, "text", 1, compact, 1)]
    db, plain = fresh(queries, rows), fresh(queries, rows)
    assert pack_some(db, 2) == 1
    found, wanted = (
        SqliteView(each, APP).events(SESSION, after=0, limit=9, max_bytes=10**9) for each in (db, plain)
    )
    for form in Form:
        assert [event.in_form(form) for event in found] == [event.in_form(form) for event in wanted]
    assert [event.form for event in found] == [Form.NESTED, Form.COMPACT]
