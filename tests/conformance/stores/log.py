"""The log and its turns: numbers without gaps, jobs that undo only themselves, who hears of it when."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import orjson
import pytest

from clawdforge.core.models.events import draft
from clawdforge.core.models.rows import AppRow, Commit, PersonaRow, TokenRow
from clawdforge.core.ports import LeaseLost, Store, SystemTx, Tx, View
from clawdforge.wire.errors import PermissionNotFound, SessionNotFound, TurnNotFound
from clawdforge.wire.event import EventType
from clawdforge.wire.event_forms import Form
from clawdforge.wire.session import Activity, OnInterrupt, PermissionMode, Retention
from clawdforge.wire.turn import IfBusy, Outcome, TurnState
from tests.conformance.stores.samples import (
    APP,
    NO_LIMIT,
    Reopen,
    a_file,
    a_message,
    a_permission,
    a_session,
    a_turn,
    log_of,
    make,
    said,
)


async def test_records_come_back_equal(store: Store, reopen: Reopen) -> None:
    meta = {"ü": [1, 2.5, None, True, {"deep": {"er": "\u0000 \u2028 😀"}}], "big": 10**40, "half": "\ud83d"}
    full = a_session(
        model="m", persona="p", instructions="i", own_cwd=True, title="T", meta=meta, labels=("a", "b"),
        pinned=True, permission_mode=PermissionMode.ASK, on_interrupt=OnInterrupt.RETRY, plan_mode=True,
        retention=Retention.KEEP, project_key="k", parent_session_id="x", forked_from="y", depth=2,
        last_turn_at=5, turn_count=3, last_turn=4, context=2, context_plan="load", agent_session_id="z",
        redo=(3, 9), holder="n", fence=7, folder="f", written=4, total_input_tokens=1, total_output_tokens=2,
        input_tokens=3, output_tokens=4, cached_tokens=5, cost_usd=0.25,
    )  # fmt: skip
    sid = full.session_id
    turn = a_turn(
        sid, 1, state=TurnState.ENDED, files=("ff_1",), outcome=Outcome.FAILED, stop_reason="s", error="e",
        code="c", error_extra={"stderr": "x"}, key="k", fingerprint="f", retry_of=1, automatic=True, cut=True,
        timeout_secs=1.5, if_busy=IfBusy.REJECT, context=2, started_at=1, ended_at=2, first_seq=1, last_seq=2,
        usage={"input_tokens": 1}, limits={"max_tokens": 5, "max_cost_usd": 0.25}, stopped_by="max_tokens",
        token_id="t", traceparent="00-1-2-01", parent=0,
    )  # fmt: skip
    message = a_message(
        sid, "c", seq=7, turn=1, thinking="t", tool_calls=({"n": 1},), plan=({"s": "x"},), token_count=3,
        is_summary=True, pending=True, truncated=True,
    )  # fmt: skip
    permission = a_permission(
        sid, "p1", kind=None, options=({"o": 1},), state="decided", decision="reject", option_id="o",
        reason="r", decided_at=9,
    )  # fmt: skip
    persona = PersonaRow(
        app_name=APP, name="n", agent="demo", created_at=1, model="m", instructions="i", plan_mode=True,
        permission_mode=PermissionMode.DENY_ALL,
    )  # fmt: skip
    app = AppRow(APP, 1, 2, 3, 4)
    token = TokenRow("t1", APP, b"\x00digest", 1, "note", 2, None)

    bare, empty = a_session(), a_session(meta={})

    def work(tx: Tx) -> None:
        for row in (full, bare, empty):
            tx.add_session(row)
        tx.add_turn(turn)
        assert tx.add_message(message) == 7
        tx.add_permission(permission)
        tx.add_file(a_file("ff_1"))
        tx.put_persona(persona)

    def credentials(tx: SystemTx) -> None:
        tx.put_app(app)
        tx.add_token(token)

    await store.write(APP, work)
    await store.write_system(credentials)
    again = await reopen()

    def check(view: View) -> None:
        assert view.session(sid) == replace(full, last_message=7, message_count=1)
        assert [view.session(row.session_id) for row in (bare, empty)] == [bare, empty]
        assert view.turn(sid, 1) == turn
        assert view.messages(sid) == [message]
        assert view.permission(sid, "p1") == permission
        assert view.file("ff_1") == a_file("ff_1")
        assert view.persona("n") == persona
        assert view.personas() == [persona]
        assert view.app_row() == app

    await again.read(APP, check)
    assert await again.read_system(lambda v: (v.token_by_hash(b"\x00digest"), v.tokens(APP))) == (
        token,
        [token],
    )


async def test_what_was_written_is_there_after_reopening(store: Store, reopen: Reopen) -> None:
    sid = await make(store)
    assert await store.write(APP, lambda tx: tx.append(sid, [said("a"), said("b")])) == 2
    again = await reopen()
    assert await log_of(again, sid) == [1, 2]
    assert await again.write(APP, lambda tx: tx.append(sid, [said("c")])) == 3


async def test_events_are_numbered_without_gaps_under_20_appenders(store: Store) -> None:
    sid = await make(store)

    async def append(size: int) -> list[int]:
        return [await store.write(APP, lambda tx: tx.append(sid, [said("x")] * size)) for _ in range(10)]

    results = await asyncio.gather(*(append(1 + n % 3) for n in range(20)))
    heads = [head for result in results for head in result]
    total = sum(10 * (1 + n % 3) for n in range(20))
    assert await log_of(store, sid) == list(range(1, total + 1))
    assert len(set(heads)) == 200
    assert max(heads) == total


async def test_a_job_that_raises_undoes_only_itself(store: Store) -> None:
    sid = await make(store)

    def good(tx: Tx) -> int:
        tx.add_message(a_message(sid, "kept words"))
        return tx.append(sid, [said("x")])

    def bad(tx: Tx) -> None:
        good(tx)
        tx.change_session(sid, title="gone")
        raise RuntimeError("on purpose")

    told: list[Commit] = []
    store.listen(told.append)
    jobs = [store.write(APP, bad if n % 3 == 1 else good) for n in range(30)]
    results = await asyncio.gather(*jobs, return_exceptions=True)
    assert [type(r) for r in results] == [RuntimeError if n % 3 == 1 else int for n in range(30)]
    assert await log_of(store, sid) == list(range(1, 21))
    assert [event.seq for commit in told for event in commit.events] == list(range(1, 21))
    row = await store.read(APP, lambda v: v.session(sid))
    assert row is not None
    assert (row.title, row.head, row.message_count, row.last_message) == ("", 20, 20, 20)
    hits, _ = await store.read(APP, lambda v: v.search("kept", limit=100))
    assert len(hits) == 20


async def test_listeners_hear_of_a_commit_before_its_writer(store: Store) -> None:
    sid = await make(store)
    order: list[tuple[str, int]] = []
    store.listen(lambda commit: order.extend(("heard", event.seq) for event in commit.events))

    async def append() -> None:
        head = await store.write(APP, lambda tx: tx.append(sid, [said("x")]))
        order.append(("returned", head))

    await asyncio.gather(*(append() for _ in range(50)))
    assert [seq for what, seq in order if what == "heard"] == list(range(1, 51))
    for seq in range(1, 51):
        assert order.index(("heard", seq)) < order.index(("returned", seq))


async def test_a_listener_gets_the_bytes_that_readers_get(store: Store) -> None:
    sid = await make(store)
    told: list[Commit] = []
    store.listen(told.append)
    await store.write(APP, lambda tx: tx.append(sid, [said("ä"), draft(EventType.TURN_QUEUED, 1, 5)]))
    stored = await store.read(APP, lambda v: v.events(sid, after=0, limit=9, max_bytes=NO_LIMIT))
    assert told == [Commit(APP, sid, tuple(stored))]


async def test_work_of_a_cancelled_caller_is_done_all_the_same(store: Store) -> None:
    sid = await make(store)
    caller = asyncio.create_task(store.write(APP, lambda tx: tx.append(sid, [said("x")])))
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    await store.write(APP, lambda tx: tx.append(sid, [said("y")]))
    assert await log_of(store, sid) == [1, 2]


async def test_a_session_has_one_active_turn(store: Store) -> None:
    sid = await make(store)
    for number in (1, 2, 3):
        await store.write(APP, lambda tx, n=number: tx.add_turn(a_turn(sid, n)))  # type: ignore[misc]
    await store.write(APP, lambda tx: tx.change_turn(sid, 1, state=TurnState.RUNNING))
    await store.write(APP, lambda tx: tx.change_session(sid, activity=Activity.RUNNING))
    with pytest.raises(Exception, match=r"(?i)unique"):
        await store.write(APP, lambda tx: tx.change_turn(sid, 2, state=TurnState.WAITING))

    def check(view: View) -> None:
        active = view.active_turn(sid)
        assert active is not None
        assert active.turn_index == 1
        assert [turn.turn_index for turn in view.queued_turns(sid)] == [2, 3]
        assert [turn.turn_index for turn in view.turns(sid, after=1, limit=1)] == [2]
        assert [turn.turn_index for turn in view.turns_from(sid, 2)] == [2, 3]
        assert view.turns_in_flight() == 3

    await store.read(APP, check)


async def test_a_key_is_used_once_in_a_session(store: Store) -> None:
    first, second = await make(store), await make(store)
    await store.write(APP, lambda tx: tx.add_turn(a_turn(first, 1, key="k")))
    await store.write(APP, lambda tx: tx.add_turn(a_turn(second, 1, key="k")))
    with pytest.raises(Exception, match=r"(?i)unique"):
        await store.write(APP, lambda tx: tx.add_turn(a_turn(first, 2, key="k")))
    found = await store.read(APP, lambda v: (v.turn_by_key(first, "k"), v.turn_by_key(first, "unknown")))
    assert found == (a_turn(first, 1, key="k"), None)


async def test_a_risen_fence_shuts_out_the_old_holder(store: Store) -> None:
    sid = await make(store)
    old = await store.write(APP, lambda tx: tx.claim(sid, "one"))
    new = await store.write(APP, lambda tx: tx.claim(sid, "two"))
    assert new > old
    with pytest.raises(LeaseLost):
        await store.write(APP, lambda tx: tx.append(sid, [said("stale")], fence=old))
    assert await store.write(APP, lambda tx: tx.append(sid, [said("fresh")], fence=new)) == 1
    row = await store.read(APP, lambda v: v.session(sid))
    assert row is not None
    assert (row.holder, row.fence) == ("two", new)


async def test_what_a_holder_has_written_is_counted_from_its_claim_on(store: Store) -> None:
    sid = await make(store)
    fence = await store.write(APP, lambda tx: tx.claim(sid, "one"))

    async def counted() -> int:
        row = await store.read(APP, lambda v: v.session(sid))
        assert row is not None
        return row.written

    await store.write(APP, lambda tx: tx.append(sid, [said("a"), said("b")], fence=fence, written=2))
    await store.write(APP, lambda tx: tx.append(sid, [said("somebody else's")]))
    assert await counted() == 2
    with pytest.raises(LeaseLost):
        await store.write(APP, lambda tx: tx.append(sid, [said("c")], fence=fence - 1, written=3))
    assert await counted() == 2
    await store.write(APP, lambda tx: tx.claim(sid, "two"))
    assert await counted() == 0


async def test_an_unknown_column_is_refused(store: Store) -> None:
    sid = await make(store)
    for name in ("no_such", "session_id", "app_name", "title = '' --"):
        with pytest.raises(TypeError):
            await store.write(APP, lambda tx, name=name: tx.change_session(sid, **{name: "x"}))  # type: ignore[misc]


async def test_what_is_not_there_cannot_be_changed(store: Store) -> None:
    sid = await make(store)
    with pytest.raises(SessionNotFound):
        await store.write(APP, lambda tx: tx.change_session("unknown", title="x"))
    with pytest.raises(SessionNotFound):
        await store.write(APP, lambda tx: tx.append("unknown", [said("x")]))
    with pytest.raises(TurnNotFound):
        await store.write(APP, lambda tx: tx.change_turn(sid, 5, cut=True))
    with pytest.raises(PermissionNotFound):
        await store.write(APP, lambda tx: tx.change_permission(sid, "unknown", state="expired"))


async def test_an_event_comes_back_with_its_turn_and_its_form(store: Store) -> None:
    sid = await make(store)
    told: list[Commit] = []
    store.listen(told.append)
    await store.write(APP, lambda tx: tx.append(sid, [said("a"), said("b", 1), said("c", 12)]))
    events = await store.read(APP, lambda v: v.events(sid, after=0, limit=9, max_bytes=NO_LIMIT))
    assert [(event.seq, event.turn, event.form) for event in events] == [
        (1, None, Form.COMPACT),
        (2, 1, Form.COMPACT),
        (3, 12, Form.COMPACT),
    ]
    assert [event for commit in told for event in commit.events] == events


async def test_pages_of_events_are_bounded(store: Store) -> None:
    sid = await make(store)
    await store.write(APP, lambda tx: tx.append(sid, [said("x" * 1000) for _ in range(20)]))

    def seqs(**how: int) -> Callable[[View], list[int]]:
        return lambda view: [event.seq for event in view.events(sid, **how)]

    assert await store.read(APP, seqs(after=0, limit=3, max_bytes=NO_LIMIT)) == [1, 2, 3]
    assert await store.read(APP, seqs(after=18, limit=9, max_bytes=NO_LIMIT)) == [19, 20]
    assert await store.read(APP, seqs(after=4, limit=9, max_bytes=1)) == [5]
    size = len((await store.read(APP, lambda v: v.events(sid, after=10, limit=1, max_bytes=1)))[0].data)
    assert await store.read(APP, seqs(after=10, limit=20, max_bytes=3 * size)) == [11, 12, 13]
    assert await store.read(APP, seqs(after=10, limit=20, max_bytes=3 * size - 1)) == [11, 12]
    assert await store.read(APP, seqs(after=20, limit=9, max_bytes=1)) == []
    assert await store.read(APP, seqs(after=10**30, limit=9, max_bytes=1)) == []


async def test_a_large_event_comes_back_whole(store: Store) -> None:
    sid = await make(store)
    text = "wörd " * 4_000_000
    await store.write(APP, lambda tx: tx.append(sid, [said("a"), said(text), said("b")]))
    events = await store.read(APP, lambda v: v.events(sid, after=1, limit=9, max_bytes=1))
    assert [event.seq for event in events] == [2]
    assert orjson.loads(events[0].data)["content"] == text


async def test_a_turn_has_the_events_that_its_agent_sent(store: Store) -> None:
    sid = await make(store)

    def run(tx: Tx, index: int) -> None:
        tx.add_turn(a_turn(sid, index, state=TurnState.RUNNING))
        first = tx.append(sid, [draft(EventType.TURN_STARTED, index, 5)])
        tx.change_turn(sid, index, first_seq=first)
        tx.append(sid, [said("a", index), draft(EventType.MESSAGE_POSTED, None, 5), said("b", index)])
        last = tx.append(sid, [draft(EventType.TURN_ENDED, index, 6)])
        tx.change_turn(sid, index, state=TurnState.ENDED, last_seq=last)

    for index in (1, 2):
        await store.write(APP, lambda tx, index=index: run(tx, index))  # type: ignore[misc]
    await store.write(APP, lambda tx: tx.add_turn(a_turn(sid, 3)))

    def seqs(index: int, after: int = 0) -> Callable[[View], list[int]]:
        return lambda v: [e.seq for e in v.turn_events(sid, index, after=after, limit=9, max_bytes=NO_LIMIT)]

    assert await store.read(APP, seqs(1)) == [2, 4]
    assert await store.read(APP, seqs(2)) == [7, 9]
    assert await store.read(APP, seqs(2, after=7)) == [9]
    assert await store.read(APP, seqs(3)) == []
