"""Lists and counts: pages of sessions, where work waits, what the sweeper finds, what operators see."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from clawdforge.core.models.rows import AppRow, PauseRow, RunRow, SessionQuery, TokenRow
from clawdforge.core.ports import Store, SystemTx, SystemView, Tx, View
from clawdforge.wire.errors import InvalidRequest
from clawdforge.wire.session import Activity, Retention
from clawdforge.wire.turn import TurnState
from tests.conformance.stores.samples import (
    APP,
    OTHER,
    a_file,
    a_session,
    a_turn,
    make,
    said,
)


async def ids(store: Store, app: str = APP, **query: Any) -> list[str]:
    page, _ = await store.read(app, lambda v: v.sessions(SessionQuery(**query)))
    return [row.session_id for row in page]


async def test_sessions_are_listed_by_last_activity(store: Store) -> None:
    old, new = await make(store, a_session(updated_at=1)), await make(store, a_session(updated_at=2))
    assert await ids(store) == [new, old]
    await store.write(APP, lambda tx: tx.append(old, [said("x")]))
    assert await ids(store) == [old, new]


async def test_a_walk_over_pages_sees_nothing_twice_while_rows_change(store: Store) -> None:
    made = [await make(store, a_session(updated_at=5, session_id=f"s{n:02}")) for n in range(25)]
    seen: list[str] = []
    query = SessionQuery(limit=10)
    while True:
        page, cursor = await store.read(APP, lambda v, query=query: v.sessions(query))  # type: ignore[misc]
        seen += [row.session_id for row in page]
        await store.write(APP, lambda tx, last=seen[-1]: tx.append(last, [said("x")]))  # type: ignore[misc]
        await make(store, a_session(updated_at=9))
        if cursor is None:
            break
        query = SessionQuery(limit=10, cursor=cursor)
    assert seen == sorted(made, reverse=True)


async def test_a_cursor_that_is_not_ours_is_refused(store: Store) -> None:
    for cursor in ("x", "", "é", "bm9uZQ", "WzEsMl0", "WyJhIiwiYiJd", "A" * 9999):
        with pytest.raises(InvalidRequest):
            await store.read(APP, lambda v, c=cursor: v.sessions(SessionQuery(cursor=c)))  # type: ignore[misc]


async def test_sessions_are_filtered(store: Store) -> None:
    a = await make(store, a_session(session_id="abc-1", agent="demo", labels=("red",), title="100% Ready"))
    b = await make(store, a_session(session_id="abd-2", agent="claude", closed_at=5, project_key="p"))
    c = await make(store, a_session(session_id="xyz_3", parent_session_id=a, labels=("red", "blue")))
    await make(store, a_session(session_id="abc-9", deleted_at=5))
    await make(store, a_session(app_name=OTHER, session_id="abc-8"))
    assert sorted(await ids(store)) == [a, b, c]
    assert sorted(await ids(store, include_closed=False)) == [a, c]
    assert sorted(await ids(store, state="active")) == [a, c]
    assert await ids(store, state="ended") == [b]
    assert await ids(store, state="ended", include_closed=False) == []
    assert await ids(store, agent="claude") == [b]
    assert sorted(await ids(store, label="red")) == [a, c]
    assert await ids(store, label="re") == []
    assert await ids(store, project="p") == [b]
    assert await ids(store, parent=a) == [c]
    assert await ids(store, prefix="abc") == [a]
    assert sorted(await ids(store, prefix="ab")) == [a, b]
    assert await ids(store, prefix="xyz%") == []
    assert await ids(store, q="100% r") == [a]
    assert await ids(store, q="1_0") == []
    assert await ids(store, q="\ud800") == []


async def test_open_sessions_are_counted(store: Store) -> None:
    for fields in ({}, {}, {"retention": Retention.KEEP}, {"closed_at": 5}, {"deleted_at": 5}):
        await make(store, a_session(**fields))
    await make(store, a_session(app_name=OTHER))
    assert await store.read(APP, lambda v: (v.count_open_sessions(), v.count_app_sessions())) == (3, 3)
    assert await store.read(OTHER, lambda v: (v.count_open_sessions(), v.count_app_sessions())) == (3, 1)
    assert await store.read(APP, lambda v: v.count_ttl_sessions()) == 2
    assert await store.read(OTHER, lambda v: v.count_ttl_sessions()) == 1
    assert await store.read_system(lambda v: v.open_session_counts()) == {APP: (3, 2), OTHER: (1, 1)}
    assert await store.read_system(lambda v: (v.count_open_sessions(), v.session_counts())) == (
        3,
        {APP: 4, OTHER: 1},
    )


async def test_unfinished_work_is_found(store: Store) -> None:
    running, late, early, closed, deleted, done = [await make(store) for _ in range(6)]

    def fill(tx: Tx) -> None:
        tx.add_turn(a_turn(running, 1, state=TurnState.WAITING))
        tx.add_turn(a_turn(running, 2))
        tx.add_turn(a_turn(late, 1, queued_at=20))
        tx.add_turn(a_turn(early, 1, state=TurnState.ENDED))
        tx.add_turn(a_turn(early, 2, queued_at=10))
        tx.add_turn(a_turn(early, 3, queued_at=30))
        tx.add_turn(a_turn(closed, 1))
        tx.add_turn(a_turn(deleted, 1, state=TurnState.RUNNING))
        tx.add_turn(a_turn(done, 1, state=TurnState.ENDED))
        for sid in (running, late, early, closed, deleted):
            tx.change_session(sid, activity=Activity.QUEUED)
        tx.change_session(running, activity=Activity.WAITING)
        tx.change_session(closed, closed_at=5)
        tx.change_session(deleted, deleted_at=5)

    await store.write(APP, fill)
    assert await store.read_system(lambda v: v.active_sessions()) == [(APP, running)]
    assert await store.read_system(lambda v: v.waiting_sessions()) == [(APP, early), (APP, late)]
    assert await store.read(APP, lambda v: v.turns_in_flight()) == 6
    assert await store.read(OTHER, lambda v: v.turns_in_flight()) == 0
    assert await store.read_system(lambda v: v.turns_of_apps()) == {APP: 6}


async def test_the_sweeper_finds_what_is_idle_closed_and_deleted(store: Store) -> None:
    # updated_at is recent everywhere: only turns count as activity.
    never = await make(store, a_session(created_at=10, updated_at=900))
    ran = await make(store, a_session(created_at=1, last_turn_at=20, updated_at=900))
    await make(store, a_session(created_at=1, last_turn_at=500, updated_at=900))
    await make(store, a_session(created_at=1, retention=Retention.KEEP))
    busy = await make(store, a_session(created_at=1))
    await store.write(APP, lambda tx: tx.add_turn(a_turn(busy, 1)))
    shut = await make(store, a_session(created_at=1, closed_at=30))
    await make(store, a_session(created_at=1, closed_at=300))
    await make(store, a_session(created_at=1, closed_at=30, retention=Retention.KEEP))
    dead = await make(store, a_session(created_at=1, closed_at=3, deleted_at=40))

    def check(view: SystemView) -> None:
        assert view.idle_sessions(100, 9) == [(APP, never), (APP, ran)]
        assert view.idle_sessions(100, 1) == [(APP, never)]
        assert view.idle_sessions(20, 9) == [(APP, never)]
        assert view.closed_sessions(100, 9) == [(APP, shut)]
        assert view.closed_sessions(30, 9) == []
        assert view.deleted_sessions(2**62, 9) == [(APP, dead)]

    await store.read_system(check)


async def test_a_workspace_is_given_up_with_the_last_session_in_it(store: Store) -> None:
    parent = await make(store, a_session(cwd="/w/1", own_cwd=True))
    fork = await make(store, a_session(cwd="/w/1", own_cwd=True, forked_from=parent))
    named = await make(store, a_session(cwd="/w/2"))
    await store.write(APP, lambda tx: tx.change_session(parent, deleted_at=1))

    def last(session_id: str) -> Callable[[SystemView], str | None]:
        return lambda view: view.last_workspace(session_id)

    assert [await store.read_system(last(one)) for one in (parent, fork, named, "none")] == [None] * 4
    assert await store.write(APP, lambda tx: tx.purge(parent, 100))
    assert await store.read_system(last(fork)) == "/w/1"


async def test_turns_that_have_not_ended_are_counted_by_state(store: Store) -> None:
    first, second = await make(store), await make(store, a_session(app_name=OTHER))
    states = (TurnState.ENDED, TurnState.RUNNING, TurnState.QUEUED, TurnState.QUEUED)

    def fill(tx: Tx) -> None:
        for number, state in enumerate(states, 1):
            tx.add_turn(a_turn(first, number, state=state))

    await store.write(APP, fill)
    await store.write(OTHER, lambda tx: tx.add_turn(a_turn(second, 1, state=TurnState.WAITING)))
    assert await store.read_system(lambda v: v.turn_counts()) == {"running": 1, "queued": 2, "waiting": 1}


async def test_commits_are_timed(store: Store) -> None:
    before = store.commit_times.samples()[-1].value
    await make(store)
    assert store.commit_times.samples()[-1].value == before + 1
    await store.read_system(lambda v: v.apps())
    assert store.commit_times.samples()[-1].value == before + 1


async def test_uploads_that_no_open_session_names_grow_old(store: Store) -> None:
    open_one, shut = await make(store), await make(store, a_session(closed_at=5))

    def fill(tx: Tx) -> None:
        for n, name in enumerate(("free", "used", "past")):
            tx.add_file(a_file(name, size=100 + n, created_at=10))
        tx.add_file(a_file("young", size=103, created_at=90))
        tx.add_turn(a_turn(open_one, 1, files=("used",)))
        tx.add_turn(a_turn(shut, 1, files=("past",)))

    await store.write(APP, fill)
    assert await store.read(APP, lambda v: sum(v.stored_bytes().values())) == 406
    old = await store.read_system(lambda v: [row.file_token for row in v.old_files(50, 9)])
    assert old == ["free", "past"]
    await store.write(APP, lambda tx: tx.remove_file("free"))
    await store.write(APP, lambda tx: tx.remove_file("free"))
    assert await store.read(APP, lambda v: (v.file("free"), sum(v.stored_bytes().values()))) == (None, 306)


async def test_apps_tokens_and_usage(store: Store) -> None:
    def fill(tx: SystemTx) -> None:
        tx.put_app(AppRow(APP, 5))
        tx.put_app(AppRow(APP, 99, max_sessions=3))
        tx.put_app(AppRow("idle", 6))
        tx.add_token(TokenRow("t1", APP, b"1", 1))
        tx.add_token(TokenRow("t2", "idle", b"2", 2))

    await store.write_system(fill)
    with pytest.raises(Exception, match=r"(?i)unique"):
        await store.write_system(lambda tx: tx.add_token(TokenRow("t3", OTHER, b"1", 1)))
    assert await store.write_system(lambda tx: tx.change_token("t1", revoked_at=7))
    assert not await store.write_system(lambda tx: tx.change_token("unknown", revoked_at=7))
    usage = {"turn_count": 2, "input_tokens": 3, "output_tokens": 4, "cost_usd": 0.5}
    await make(store, a_session(**usage, total_input_tokens=5, total_output_tokens=6))
    await make(store, a_session(**usage))
    run = RunRow(
        run_id="r", app_name=APP, model=None, prompt="p", ok=True, stop_reason="end_turn", duration_ms=1,
        created_at=1,
    )  # fmt: skip
    await store.write(APP, lambda tx: tx.add_run(run))

    def check(view: SystemView) -> None:
        assert view.apps() == [AppRow(APP, 5, max_sessions=3), AppRow("idle", 6)]
        assert view.app_row(APP) == AppRow(APP, 5, max_sessions=3)
        assert view.app_row("unknown") is None
        assert view.tokens(APP) == [TokenRow("t1", APP, b"1", 1, revoked_at=7)]
        assert [token.token_id for token in view.tokens()] == ["t1", "t2"]
        assert view.token_by_hash(b"9") is None
        zero = {"sessions": 0, "turns": 0, "input_tokens": 0, "output_tokens": 0}
        none = {"estimated_input_tokens": 0, "estimated_output_tokens": 0, "cost_usd": None}
        some = {"sessions": 2, "turns": 4, "input_tokens": 6, "output_tokens": 8, "cost_usd": 1.0}
        assert view.usage() == [
            {"app_name": APP, **some, "estimated_input_tokens": 5, "estimated_output_tokens": 6},
            {"app_name": "idle", **zero, **none},
        ]

    await store.read_system(check)


async def test_an_app_sees_the_pauses_that_concern_it(
    store: Store, reopen: Callable[[], Awaitable[Store]]
) -> None:
    of_all, of_agent = PauseRow(paused_at=1), PauseRow(agent="demo", reason="bad", paused_at=2)
    own, narrow = PauseRow(app_name=APP, paused_at=3), PauseRow(app_name=APP, agent="demo", paused_at=4)

    def put(tx: SystemTx) -> None:
        for row in (narrow, own, of_agent, of_all):
            tx.put_pause(row)

    await store.write_system(put)
    store = await reopen()
    assert await store.read_system(lambda view: view.pauses()) == [of_all, of_agent, own, narrow]
    assert await store.read(APP, lambda view: view.pauses()) == [of_all, of_agent, own, narrow]
    assert await store.read(OTHER, lambda view: view.pauses()) == [of_all, of_agent]
    await store.write_system(lambda tx: tx.put_pause(PauseRow(reason="later", paused_at=9)))
    assert (await store.read(OTHER, lambda view: view.pauses()))[0] == PauseRow(reason="later", paused_at=1)
    assert await store.write_system(lambda tx: tx.remove_pause("", ""))
    assert not await store.write_system(lambda tx: tx.remove_pause("", ""))
    assert await store.read(OTHER, lambda view: view.pauses()) == [of_agent]


async def test_a_view_is_one_snapshot(store: Store) -> None:
    sid = await make(store)

    def look(view: View) -> bool:
        return view.session(sid) == view.session(sid)

    assert await store.read(APP, look)
    assert store.health() is None
    assert store.version()
