"""What a commit brings at once is a pack from the start: no reader can tell, and it is packed again later."""

from collections.abc import Iterable
from itertools import accumulate, pairwise
from typing import Any, Final

import apsw
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from clawdforge.core.clock import SystemClock
from clawdforge.core.models.events import draft
from clawdforge.core.models.rows import SessionRow, TurnRow
from clawdforge.stores.sqlite import early_packs, packing
from clawdforge.stores.sqlite.connection import Db
from clawdforge.stores.sqlite.early_packs import LEAST, split
from clawdforge.stores.sqlite.migrations import migrate
from clawdforge.stores.sqlite.packs import EARLY, MAX_BYTES, MAX_EVENTS, ZLIB, unpack
from clawdforge.stores.sqlite.queries import Queries
from clawdforge.stores.sqlite.statements import NewEvents
from clawdforge.stores.sqlite.stored_bytes import CountedBytes, bytes_of_app
from clawdforge.stores.sqlite.tx import SqliteTx
from clawdforge.wire.disk import DiskForm
from clawdforge.wire.event import EventType
from clawdforge.wire.turn import TurnState
from tests.unit.test_packs import APP, SESSION, pack_some, picture

SPANS: Final = "SELECT codec, first_seq, last_seq FROM packs ORDER BY last_seq"
ROWS: Final = "SELECT seq FROM events ORDER BY seq"


@pytest.fixture(scope="module")
def queries() -> tuple[Queries, Queries]:
    return Queries(), Queries(packs_early=False)


def fresh(queries: Queries) -> Db:
    db = Db(apsw.Connection(":memory:"), queries)
    migrate(db.connection, SystemClock())
    tx = SqliteTx(db, APP, SystemClock())
    tx.add_session(
        SessionRow(app_name=APP, session_id=SESSION, agent="a", cwd="/", created_at=1, updated_at=1)
    )
    row = {"session_id": SESSION, "state": TurnState.ENDED, "prompt": "", "queued_at": 1, "first_seq": 1}
    for index in (1, 2):
        tx.add_turn(TurnRow(turn_index=index, **row))  # type: ignore[arg-type]
    tx.write_changes()
    return db


def append(db: Db, sizes: list[int]) -> None:
    """One commit, in which each event says so many letters."""
    tx = SqliteTx(db, APP, SystemClock())
    kinds = (EventType.TEXT, EventType.TURN_STARTED)
    tx.append(
        SESSION,
        [draft(kinds[size % 7 == 0], 1 + size % 2, 1, {"content": "x" * size}) for size in sizes],
    )
    tx.write_changes()


def tell(db: Db, sql: str) -> list[Any]:
    return list(db.connection.execute(sql))


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    commits=st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=9), max_size=8),
    cuts=st.lists(st.integers(0, 40), max_size=3),
)
@example(commits=[[1], [1, 2, 3, 4], [5], [1, 2, 3], [9] * 9, [1]], cuts=[3, 7, 12])
@example(commits=[[50] * 6, [50] * 6, [1, 1, 1]], cuts=[9])
def test_readers_cannot_tell_what_came_at_once(
    queries: tuple[Queries, Queries], commits: list[list[int]], cuts: list[int]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for module in (packing, early_packs):
            patch.setattr(module, "MAX_EVENTS", 6)
            patch.setattr(module, "MAX_BYTES", 400)
        patch.setattr(early_packs, "LEAST", 3)
        db, plain = (fresh(one) for one in queries)
        for sizes in commits:
            append(db, sizes)
            append(plain, sizes)
        head = sum(map(len, commits))
        before = picture(plain, head)
        assert picture(db, head) == before
        for cut in (*sorted(cuts), head):
            pack_some(db, cut)
            assert picture(db, head) == before
            counted = CountedBytes(db)
            real = counted.bytes_real(SESSION)[DiskForm.EVENTS]
            assert (counted.bytes_counted(SESSION) or {})[DiskForm.EVENTS] == real
            assert bytes_of_app(db, APP)[DiskForm.EVENTS] == real
        assert tell(db, ROWS) == []
        spans = tell(db, SPANS)
        assert {codec for codec, _, _ in spans} <= {ZLIB}
        assert all(last + 1 == first for (_, _, last), (_, first, _) in pairwise(spans))


def test_what_comes_by_itself_stays_a_row_until_it_is_old(queries: tuple[Queries, Queries]) -> None:
    db = fresh(queries[0])
    for sizes in ([1] * (LEAST - 1), [1] * LEAST, [1]):
        append(db, sizes)
    assert tell(db, SPANS) == [(EARLY, LEAST, 2 * LEAST - 1)]
    assert len(tell(db, ROWS)) == LEAST
    assert pack_some(db, LEAST) == 1, (
        "a pack that reaches beyond what is old waits, and what is before it does not"
    )
    assert tell(db, SPANS) == [(ZLIB, 1, LEAST - 1), (EARLY, LEAST, 2 * LEAST - 1)]
    assert pack_some(db, 2 * LEAST) == 1
    assert tell(db, SPANS) == [(ZLIB, 1, 2 * LEAST)]


def test_a_pack_that_was_changed_meanwhile_is_not_packed_again(queries: tuple[Queries, Queries]) -> None:
    db = fresh(queries[0])
    append(db, [1] * LEAST)
    chosen = packing.choose_slice(db, APP, SESSION, LEAST)
    assert chosen is not None
    db.connection.execute("UPDATE packs SET data = x'00'")
    assert not packing.place_pack(db, APP, chosen, chosen.pack())
    assert tell(db, SPANS) == [(EARLY, 1, LEAST)]


Event = tuple[str, int, int | None, str, int, bytes]


def join(events: Iterable[Event], most: int) -> list[NewEvents]:
    """In runs of so many, as they follow one another."""
    runs: list[NewEvents] = []
    for session_id, seq, turn, kind, by_agent, data in events:
        last = runs[-1] if runs else None
        if (
            last
            and last.session_id == session_id
            and len(last.data) < most
            and last.first + len(last.data) == seq
        ):
            runs[-1] = last._replace(data=[*last.data, data])
        else:
            runs.append(NewEvents(session_id, seq, turn, kind, by_agent, [data]))
    return runs


@given(
    sizes=st.lists(st.sampled_from([1, 100, MAX_BYTES // 9, MAX_BYTES, MAX_BYTES + 1]), max_size=40),
    gaps=st.sets(st.integers(0, 40), max_size=4),
    most=st.integers(1, 20),
)
@example(sizes=[1] * (MAX_EVENTS + LEAST), gaps=set(), most=1)
@example(sizes=[1] * (MAX_EVENTS + LEAST - 1), gaps=set(), most=MAX_EVENTS * 2)
def test_packs_have_bounds_and_nothing_is_lost(sizes: list[int], gaps: set[int], most: int) -> None:
    steps = accumulate(2 if number in gaps else 1 for number in range(len(sizes)))
    events: list[Event] = [
        ("s1", seq, 1, "text", 1, b'{"seq":%d,' % seq + b"x" * size)
        for seq, size in zip(steps, sizes, strict=True)
    ]
    found = split(join(events, most))
    again: list[Event] = [
        (run.session_id, seq, run.turn, run.type, run.by_agent, data)
        for run in found.rows
        for seq, data in enumerate(run.data, run.first)
    ]
    for one in found.packs:
        first, last, packed = one["first"], one["last"], one["data"]
        assert isinstance(first, int)
        assert isinstance(last, int)
        assert isinstance(packed, bytes)
        rows = unpack(EARLY, first, last, packed)
        assert LEAST <= len(rows) <= MAX_EVENTS
        assert one["raw_bytes"] == sum(len(row.data) for row in rows)
        assert sum(len(row.data) for row in rows) <= MAX_BYTES
        again += [("s1", row.seq, row.turn, row.type, row.by_agent, row.data) for row in rows]
        assert {row.compact for row in rows} == {1}
    assert sorted(again) == events


@pytest.mark.parametrize("most", [1, LEAST])
def test_events_of_two_sessions_are_not_packed_together(most: int) -> None:
    events: list[Event] = [
        (name, seq, None, "text", 1, b"{}") for name in ("a", "b") for seq in range(1, LEAST)
    ]
    assert split(join(events, most)).packs == []
    more = [*events, ("b", LEAST, None, "text", 1, b"{}")]
    assert [one["session"] for one in split(join(more, most)).packs] == ["b"]
