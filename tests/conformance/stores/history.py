"""Messages: what is shown, cut, archived and found; forks, purges and the ledger that outlives them."""

from dataclasses import replace
from typing import Any

import pytest

from clawdforge.core.models.events import draft
from clawdforge.core.models.rows import AuditRow
from clawdforge.core.ports import Store, Tx, View
from clawdforge.core.rules.audit_chain import START, verify_chain
from clawdforge.wire.errors import SessionNotFound
from clawdforge.wire.event import EventType
from clawdforge.wire.message import Role
from clawdforge.wire.turn import TurnState
from tests.conformance.stores.samples import (
    APP,
    NO_LIMIT,
    OTHER,
    Reopen,
    a_message,
    a_permission,
    a_session,
    a_turn,
    make,
    said,
)


async def count_of(store: Store, session_id: str) -> int:
    row = await store.read(APP, lambda v: v.session(session_id))
    assert row is not None
    return row.message_count


async def found(store: Store, q: str, app: str = APP) -> list[tuple[str, int]]:
    hits, _ = await store.read(app, lambda v: v.search(q, limit=100))
    return [(hit.session_id, hit.seq) for hit in hits]


async def test_messages_are_numbered_and_never_again_the_same(store: Store) -> None:
    sid = await make(store)
    assert await store.write(APP, lambda tx: [tx.add_message(a_message(sid)) for _ in range(3)]) == [1, 2, 3]
    await store.write(APP, lambda tx: tx.change_messages(sid, [2, 3], cut=True))
    assert await store.write(APP, lambda tx: tx.add_message(a_message(sid))) == 4


async def test_cut_and_archived_messages_are_shown_as_asked(store: Store) -> None:
    sid = await make(store)
    for number in range(1, 7):
        role = "assistant" if number % 2 == 0 else "user"
        row = a_message(sid, f"word{number}", role=role)
        await store.write(APP, lambda tx, row=row: tx.add_message(row))  # type: ignore[misc]
    await store.write(APP, lambda tx: tx.change_messages(sid, [1, 2], archived=True))
    await store.write(APP, lambda tx: tx.change_messages(sid, [5, 6], cut=True))

    def check(view: View) -> None:
        assert [m.seq for m in view.messages(sid)] == [3, 4]
        assert [m.seq for m in view.messages(sid, show="all")] == [1, 2, 3, 4]
        assert [m.seq for m in view.messages(sid, show="cut")] == [5, 6]
        assert [m.seq for m in view.messages(sid, show="all", after=1, limit=2)] == [2, 3]
        assert [m.seq for m in view.last_messages(sid, 3, show="all")] == [2, 3, 4]
        assert [m.seq for m in view.last_messages(sid, 1)] == [4]
        assert [m.seq for m in view.last_messages(sid, 1, show="cut")] == [6]
        assert [m.seq for m in view.messages_from(sid, 4)] == [4]
        assert [m.seq for m in view.messages_from(sid, 6, show="cut")] == [6]
        last = view.last_message(sid, Role.USER)
        assert last is not None
        assert last.seq == 3
        assert view.last_message(sid, "tool") is None

    await store.read(APP, check)


async def test_the_count_and_the_search_follow_what_is_visible(store: Store, reopen: Reopen) -> None:
    sid = await make(store)
    for number in range(4):
        row = a_message(sid, f"needle number{number}")
        await store.write(APP, lambda tx, row=row: tx.add_message(row))  # type: ignore[misc]
    assert (await count_of(store, sid), len(await found(store, "needle"))) == (4, 4)
    await store.write(APP, lambda tx: tx.change_messages(sid, [3, 4], cut=True))
    assert (await count_of(store, sid), await found(store, "needle")) == (2, [(sid, 2), (sid, 1)])
    await store.write(APP, lambda tx: tx.change_messages(sid, [3, 4], cut=False))
    await store.write(APP, lambda tx: tx.change_messages(sid, [1, 2], archived=True))
    assert (await count_of(store, sid), await found(store, "needle")) == (2, [(sid, 4), (sid, 3)])
    await store.write(APP, lambda tx: tx.change_messages(sid, [3], content="thread", pending=True))
    assert (await found(store, "needle"), await found(store, "thread")) == ([(sid, 4)], [(sid, 3)])
    again = await reopen()
    assert (await count_of(again, sid), await found(again, "needle")) == (2, [(sid, 4)])
    await again.write(APP, lambda tx: tx.change_session(sid, deleted_at=5))
    assert await found(again, "needle") == []


async def test_search_takes_whatever_a_person_types(store: Store) -> None:
    sid = await make(store)
    await store.write(
        APP, lambda tx: tx.add_message(a_message(sid, 'Über "quoted" foo-bar (AND) café C++ 東京'))
    )
    for q in ("uber", "cafe", "CAFÉ", "quo", '"quoted"', "foo-bar", "foo bar", "(AND)", "über cafe", "東京"):
        assert await found(store, q) == [(sid, 1)], q
    nothing = ("", "  ", "***", '"', "missing", "uber missing", "NOT uber", "content:uber", "NEAR(uber cafe)")
    for q in (*nothing, "uber OR missing", "\x00", "\ud800", "^", "a" * 100_000, "{x}:y", "-", "'; --"):
        assert await found(store, q) == [], q


async def test_a_hit_says_where_it_is_and_marks_the_words(store: Store) -> None:
    sid = await make(store, a_session(title="Trip"))
    text = "word " * 100 + "the needle in the haystack" + " word" * 100
    await store.write(APP, lambda tx: tx.add_message(a_message(sid, text, turn=3, ts=77, role="assistant")))
    hits, cursor = await store.read(APP, lambda v: v.search("needle hay", limit=5))
    assert cursor is None
    assert [replace(hit, snippet="") for hit in hits] == [
        type(hits[0])(sid, "Trip", 1, 3, "assistant", 77, "")
    ]
    assert "the «needle» in the «haystack»" in hits[0].snippet
    assert len(hits[0].snippet) < 300


async def test_search_finds_words_side_by_side_among_many_that_are_not(store: Store) -> None:
    """Dashes tie words together. Those that have them apart are more than are looked at together."""
    sid = await make(store)
    said = ["a needle-hay here", *["hay before a needle"] * 300]
    await store.write(APP, lambda tx: [tx.add_message(a_message(sid, text)) for text in said])
    hits, cursor = await store.read(APP, lambda v: v.search("needle-hay", limit=5))
    assert ([hit.seq for hit in hits], cursor) == ([1], None)


async def test_search_pages_go_from_new_to_old(store: Store) -> None:
    first, second = await make(store), await make(store)
    for number in range(10):
        row = a_message(first if number % 2 else second, f"needle {number}")
        await store.write(APP, lambda tx, row=row: tx.add_message(row))  # type: ignore[misc]
    seen: list[tuple[str, int]] = []
    cursor = None
    for _ in range(4):
        hits, cursor = await store.read(APP, lambda v, c=cursor: v.search("needle", limit=3, cursor=c))  # type: ignore[misc]
        seen += [(hit.session_id, hit.seq) for hit in hits]
        await store.write(APP, lambda tx: tx.add_message(a_message(first, "needle newer")))
    assert cursor is None
    assert seen == [(first if n % 2 else second, n // 2 + 1) for n in range(9, -1, -1)]
    hits, _ = await store.read(APP, lambda v: v.search("needle", limit=100, session_id=second))
    assert [hit.seq for hit in hits] == [5, 4, 3, 2, 1]


async def test_a_fork_has_the_visible_past_up_to_a_turn(store: Store) -> None:
    source, target, whole = await make(store), await make(store), await make(store)

    def fill(tx: Tx) -> None:
        tx.add_message(a_message(source, "imported"))
        for index in range(1, 5):
            state = TurnState.ENDED if index < 4 else TurnState.QUEUED
            tx.add_turn(a_turn(source, index, state=state, key=f"k{index}", first_seq=index, cut=index == 2))
            if index < 4:
                tx.add_message(a_message(source, f"question {index}", turn=index, cut=index == 2))
                tx.add_message(a_message(source, f"answer {index}", turn=index, cut=index == 2, pending=True))
        tx.add_message(a_message(source, "posted"))
        tx.append(source, [said("x", 1)])
        tx.copy_history(source, target, after=0, through=tx.last_of_fork(source, 1), at=5_000)
        tx.copy_history(source, whole, after=0, through=tx.last_of_fork(source, 3), at=5_000)

    await store.write(APP, fill)

    def check(view: View) -> None:
        assert [(m.seq, m.turn, m.content) for m in view.messages(target, show="all")] == [
            (1, None, "imported"),
            (2, 1, "question 1"),
            (3, 1, "answer 1"),
        ]
        assert not any(m.pending for m in view.messages(target))
        assert [m.seq for m in view.messages(whole)] == [1, 2, 3, 6, 7, 8]
        copied = a_turn(target, 1, state=TurnState.ENDED)
        assert view.turns(target) == [copied]
        assert [t.turn_index for t in view.turns(whole)] == [1, 3]
        assert view.events(target, after=0, limit=9, max_bytes=NO_LIMIT) == []
        assert view.events(target, after=-9, limit=9, max_bytes=NO_LIMIT) == []
        assert (view.count_brought(source), view.count_brought(target), view.count_brought(whole)) == (
            0,
            4,
            8,
        )
        assert view.turn_events(target, 1, after=0, limit=9, max_bytes=NO_LIMIT) == []
        row = view.session(target)
        assert row is not None
        assert (row.message_count, row.last_message, row.last_turn, row.head) == (3, 3, 1, 0)
        assert row.updated_at == 5_000
        hits, _ = view.search("question", limit=9, session_id=target)
        assert [hit.seq for hit in hits] == [2]

    await store.read(APP, check)
    assert await store.write(APP, lambda tx: tx.add_message(a_message(target))) == 4


async def test_a_fork_goes_by_what_was_said_first_not_by_number(store: Store) -> None:
    """A turn that interrupted ran before one that waited."""
    source, target = await make(store), await make(store)

    def fill(tx: Tx) -> None:
        for index in (1, 3, 2):
            tx.add_turn(a_turn(source, index, state=TurnState.ENDED))
            tx.add_message(a_message(source, f"question {index}", turn=index))
        tx.copy_history(source, target, after=0, through=tx.last_of_fork(source, 3), at=5_000)

    await store.write(APP, fill)
    assert [m.turn for m in await store.read(APP, lambda v: v.messages(target))] == [1, 3]
    assert [t.turn_index for t in await store.read(APP, lambda v: v.turns(target))] == [1, 3]


async def test_the_turn_that_spoke_last_and_the_archive(store: Store) -> None:
    sid = await make(store)
    assert await store.read(APP, lambda v: v.last_spoken_turn(sid)) == 0

    def fill(tx: Tx) -> None:
        for turn in (0, 1, 3, 2, None):
            tx.add_message(a_message(sid, turn=turn))

    await store.write(APP, fill)
    assert await store.read(APP, lambda v: (v.last_spoken_turn(sid), v.last_spoken_turn(sid, before=4))) == (
        2,
        3,
    )
    await store.write(APP, lambda tx: tx.change_messages(sid, [4], cut=True))
    assert await store.read(APP, lambda v: v.last_spoken_turn(sid)) == 3
    assert await store.write(APP, lambda tx: tx.archive_messages(sid)) == 4
    assert await store.read(APP, lambda v: (v.last_spoken_turn(sid), v.messages(sid))) == (0, [])
    assert await store.write(APP, lambda tx: tx.archive_messages(sid)) == 0
    row = await store.read(APP, lambda v: v.session(sid))
    assert row is not None
    assert row.message_count == 0


async def test_deleted_is_gone_at_once_and_purged_in_steps(store: Store) -> None:
    sid, neighbour = await make(store), await make(store)

    def say(tx: Tx) -> None:
        for session_id in (sid, neighbour):
            tx.append(session_id, [said("x") for _ in range(5)])

    def fill(tx: Tx) -> None:
        for session_id in (sid, neighbour):
            tx.add_turn(a_turn(session_id, 1, files=("ff_1",)))
            tx.add_permission(a_permission(session_id, f"p-{session_id}"))
            for _ in range(10):
                tx.add_message(a_message(session_id, "needle"))
        tx.audit(sid, "create", 1, {})

    for _ in range(5):  # a few at a time: what comes at once may be a pack from the start
        await store.write(APP, say)
    await store.write(APP, fill)
    with pytest.raises(ValueError, match="deleted"):
        await store.write(APP, lambda tx: tx.purge(sid, 10))
    await store.write(APP, lambda tx: tx.change_session(sid, deleted_at=9))
    assert await store.read(APP, lambda v: (v.session(sid), v.messages(sid), v.turns(sid))) == (None, [], [])
    with pytest.raises(SessionNotFound):
        await store.write(APP, lambda tx: tx.append(sid, [said("late")]))
    assert await store.read_system(lambda v: v.deleted_sessions(NO_LIMIT, 9)) == [(APP, sid)]
    assert await store.write(OTHER, lambda tx: tx.purge(sid, 10_000))
    steps = 1
    while not await store.write(APP, lambda tx: tx.purge(sid, 10)):
        steps += 1
    assert steps == 4
    assert await store.read_system(lambda v: v.deleted_sessions(NO_LIMIT, 9)) == []
    assert [row.session_id for row in await store.read_system(lambda v: v.audit())] == [sid]
    assert await store.write(APP, lambda tx: tx.purge(sid, 10))

    def check(view: View) -> None:
        assert len(view.events(neighbour, after=0, limit=99, max_bytes=NO_LIMIT)) == 25
        assert len(view.search("needle", limit=99)[0]) == len(view.messages(neighbour)) == 10
        assert view.turn(neighbour, 1) is not None
        assert len(view.permissions(neighbour)) == 1

    await store.read(APP, check)


async def test_the_ledger_is_one_chain_over_all_apps(store: Store, reopen: Reopen) -> None:
    for number in range(6):
        app = (APP, OTHER)[number % 2]
        await store.write(app, lambda tx, n=number: tx.audit(f"s{n}", "create", n, {"ü": [n, 10**30]}))  # type: ignore[misc]
    await store.write_system(lambda tx: tx.audit_system(APP, "token", 9, {}))
    again = await reopen()
    rows = await again.read_system(lambda v: v.audit())
    head = rows[-1].hash
    assert verify_chain(rows) == (True, 7, head, None, None)
    assert verify_chain(rows, rows[3].hash).valid
    assert verify_chain([], START).valid
    assert await again.read_system(lambda v: [r.number for r in v.audit(app_name=OTHER, after=2)]) == [4, 6]
    assert await again.read_system(lambda v: [r.number for r in v.audit(after=1, limit=2)]) == [2, 3]

    def bad(entries: list[AuditRow], noted: str | None = None) -> int | None:
        verdict = verify_chain(entries, noted)
        assert verdict.valid is False
        assert verdict.reason
        return verdict.first_bad

    changed = replace(rows[2], details={"ü": [99]})
    assert bad([*rows[:2], changed, *rows[3:]]) == 3
    assert bad([*rows[:2], *rows[3:]]) == 3
    assert bad(rows[1:]) == 1
    assert bad([rows[0], rows[2], rows[1], *rows[3:]]) == 2
    assert bad(rows[:5], head) == 6
    assert bad([], head) == 1


async def test_a_permission_is_decided_and_remembered(store: Store) -> None:
    sid, other = await make(store), await make(store)

    def ask(tx: Tx) -> None:
        tx.add_permission(a_permission(sid, "p2", requested_at=2))
        tx.add_permission(a_permission(sid, "p1", requested_at=1))
        tx.add_permission(a_permission(sid, "p3", requested_at=3, kind=None))
        tx.append(sid, [draft(EventType.PERMISSION_REQUESTED, 1, 5)])

    await store.write(APP, ask)
    always = {"state": "decided", "decision": "allow_always", "decided_at": 9}
    await store.write(APP, lambda tx: tx.change_permission(sid, "p2", **always))
    await store.write(APP, lambda tx: tx.change_permission(sid, "p1", state="decided", decision="allow_once"))

    def check(view: View) -> None:
        assert [row.permission_id for row in view.permissions(sid)] == ["p1", "p2", "p3"]
        assert [row.permission_id for row in view.permissions(sid, state="pending")] == ["p3"]
        assert [row.permission_id for row in view.permissions(sid, state="decided")] == ["p1", "p2"]
        assert view.is_granted(sid, "bash", "execute")
        assert not view.is_granted(sid, "bash", None)
        assert not view.is_granted(sid, "read", "execute")
        assert not view.is_granted(other, "bash", "execute")

    await store.read(APP, check)


async def test_every_character_comes_back_however_it_is_asked_for(store: Store) -> None:
    sid = await make(store)
    text = "NUL \0, no character \ufdd0 \ufdd00, \U0001f600 and \u00e9"

    def fill(tx: Tx) -> None:
        tx.add_turn(a_turn(sid, 1, prompt=text))
        tx.add_message(a_message(sid, text, turn=1))

    await store.write(APP, fill)

    def ask(view: View) -> list[str | None]:
        page: dict[str, Any] = {"limit": 9, "max_bytes": 1000}
        turn, message = view.turn(sid, 1), view.last_messages(sid, 1)[0]
        turns, _ = view.turn_page(sid, after=0, **page)
        after, _ = view.message_page(sid, after=0, show="all", **page)
        before, _ = view.message_page_before(sid, before=None, show="all", **page)
        return [
            turn.prompt if turn else None,
            message.content,
            turns[0].prompt,
            after[0].content,
            before[0].content,
        ]

    assert await store.read(APP, ask) == [text] * 5
