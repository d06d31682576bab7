"""Nodes that share a store: who lives, who has a duty, who holds a session, and what its holder is wished."""

from dataclasses import replace

import pytest

from clawdforge.core.models.nodes import CodeRow, NodeRow, WishKind, WishRow
from clawdforge.core.models.rows import PauseRow, SessionRow
from clawdforge.core.ports import LeaseLost, Store, Tx
from clawdforge.core.rules.interrupted import adopt
from clawdforge.core.rules.leases import give_up, hand_over, let_go, note_folder, take
from clawdforge.core.rules.turns import start_next, submit
from clawdforge.wire.nodes import NodeState
from clawdforge.wire.turn import Outcome, TurnRequest
from tests.conformance.stores.samples import APP, a_session, make, said


def a_node(name: str) -> NodeRow:
    return NodeRow(node=name, name=f"{name}.lan:1", folder=name, version="0", started_at=ord(name[0]))


async def join(store: Store, *names: str) -> None:
    for name in names:
        await store.write_system(lambda tx, name=name: tx.add_node(a_node(name)))  # type: ignore[misc]


async def die(store: Store, node: str) -> None:
    assert await store.write_system(lambda tx: tx.declare_dead(node, 0))


async def row_of(store: Store, session_id: str) -> SessionRow:
    found = await store.read(APP, lambda view: view.session(session_id))
    assert found is not None
    return found


def prompt(tx: Tx, session_id: str, node: str, *, starts: bool = True) -> int | None:
    submit(tx, session_id, TurnRequest(prompt="go"), None, 1)
    started = start_next(tx, session_id, node, 2) if starts else None
    return None if started is None else started.fence


async def test_a_node_lives_until_it_is_declared_dead_for_good(store: Store) -> None:
    await join(store, "b", "a")
    assert [row.node for row in await store.read_system(lambda view: view.nodes())] == ["a", "b"]
    assert await store.write_system(lambda tx: tx.beat("a"))
    assert not await store.write_system(lambda tx: tx.declare_dead("a", 0)), "it has beaten since"
    assert await store.write_system(lambda tx: tx.declare_dead("a", 1))
    assert not await store.write_system(lambda tx: tx.declare_dead("a", 1)), "it was already"
    assert not await store.write_system(lambda tx: tx.beat("a"))
    found = await store.read(APP, lambda view: [view.is_alive(name) for name in ("a", "b", "nobody")])
    assert found == [False, True, False]
    await store.write_system(lambda tx: tx.remove_node("a"))
    (left,) = await store.read_system(lambda view: view.nodes())
    assert (left.node, left.state) == ("b", NodeState.UP)


async def test_whoever_had_the_same_data_folder_before_is_dead(store: Store) -> None:
    """A server that is started again after a kill need not wait for a lease: it has the folder's lock."""
    await join(store, "a", "b")
    again = replace(a_node("c"), folder="a")
    await store.write_system(lambda tx: tx.add_node(again))
    found = await store.read_system(lambda view: view.nodes())
    assert [(row.node, row.state.value) for row in found] == [("a", "dead"), ("b", "up"), ("c", "up")]


async def test_a_duty_is_one_living_node_s(store: Store) -> None:
    await join(store, "a", "b")
    assert await store.write_system(lambda tx: tx.take_duty("sweep", "a"))
    assert not await store.write_system(lambda tx: tx.take_duty("sweep", "b"))
    assert await store.write_system(lambda tx: tx.take_duty("sweep", "a")), "it has it already"
    assert await store.write_system(lambda tx: tx.take_duty("pack", "b")), "another one"
    await die(store, "a")
    assert await store.write_system(lambda tx: tx.take_duty("sweep", "b"))


async def test_only_its_holder_starts_a_turn_while_that_lives(store: Store) -> None:
    await join(store, "a", "b")
    sid = await make(store)
    fence = await store.write(APP, lambda tx: prompt(tx, sid, "a"))
    assert fence is not None
    await store.write(APP, lambda tx: adopt(tx, sid, "b", "cut off", 3))
    assert await store.read(APP, lambda view: view.active_turn(sid)) is not None, "its holder lives"
    await store.write(APP, lambda tx: prompt(tx, sid, "b", starts=False))
    await die(store, "a")
    assert await store.read_system(lambda view: view.cut_off_sessions()) == [(APP, sid)]
    await store.write(APP, lambda tx: adopt(tx, sid, "b", "cut off", 3))
    assert await store.read_system(lambda view: view.cut_off_sessions()) == []
    ended = await store.read(APP, lambda view: view.turn(sid, 1))
    assert ended is not None
    assert ended.outcome is Outcome.INTERRUPTED
    with pytest.raises(LeaseLost):
        await store.write(APP, lambda tx: tx.append(sid, [said("late")], fence=fence))
    assert (await row_of(store, sid)).holder is None, "any node may run what waits"
    assert await store.write(APP, lambda tx: start_next(tx, sid, "b", 4)) is not None
    await store.write(APP, lambda tx: adopt(tx, sid, "b", "cut off", 5))
    running = await store.read(APP, lambda view: view.active_turn(sid))
    assert running is not None, "a list of what was cut off may be old: this one is ours"


async def test_a_session_runs_where_its_workspace_is_while_that_node_lives(store: Store) -> None:
    await join(store, "a", "b")
    sid = await make(store, a_session(folder="a"))
    assert await store.write(APP, lambda tx: prompt(tx, sid, "b")) is None
    assert await store.read_system(lambda view: view.sessions_to_run("b")) == []
    assert await store.read_system(lambda view: view.sessions_to_run("a")) == [(APP, sid)]
    assert await store.write(APP, lambda tx: take(tx, sid, "b")), "for a change of its history"
    assert await store.write(APP, lambda tx: start_next(tx, sid, "b", 2)) is None
    await store.write(APP, lambda tx: give_up(tx, sid, "b"))
    assert (await row_of(store, sid)).holder is None
    await die(store, "a")
    assert await store.read_system(lambda view: view.sessions_to_run("b")) == [(APP, sid)]
    await store.write_system(lambda tx: tx.put_pause(PauseRow(app_name=APP, paused_at=1)))
    assert await store.read_system(lambda view: view.sessions_to_run("b")) == []
    await store.write_system(lambda tx: tx.remove_pause(APP, ""))
    started = await store.write(APP, lambda tx: start_next(tx, sid, "b", 2))
    assert started is not None
    assert (await row_of(store, sid)).folder == "a", "nobody has looked yet whether it is there"
    await store.write(APP, lambda tx: note_folder(tx, sid, started.fence))
    assert (await row_of(store, sid)).folder == "b", "from now on it is there"
    assert await store.read_system(lambda view: view.sessions_to_run("b")) == []


@pytest.mark.parametrize("folder", [None, "dead", "a", "b"])
@pytest.mark.parametrize("holder", [None, "dead", "a", "b"])
async def test_a_turn_that_waits_is_some_living_nodes_to_run(
    store: Store, holder: str | None, folder: str | None
) -> None:
    """Whoever sees it in its list runs it, or gives it up for the one who then does."""
    await join(store, "a", "b", "dead")
    await die(store, "dead")
    sid = await make(store, a_session(folder=folder, holder=holder))
    await store.write(APP, lambda tx: prompt(tx, sid, "a", starts=False))
    started = []
    for _ in range(2):
        for node in ("a", "b"):
            if await store.read_system(lambda view, node=node: view.sessions_to_run(node)):  # type: ignore[misc]
                found = await store.write(APP, lambda tx, node=node: start_next(tx, sid, node, 2))  # type: ignore[misc]
                if found is None:
                    await store.write(APP, lambda tx, node=node: give_up(tx, sid, node))  # type: ignore[misc]
                else:
                    started.append(node)
    assert len(started) == 1
    assert folder not in ("a", "b") or started == [folder]


async def test_a_session_whose_turn_was_cut_off_is_taken_by_nobody_before_that_is_ended(
    store: Store,
) -> None:
    """Whoever held it without running it would hide the turn from those who end such turns."""
    await join(store, "a", "b")
    sid = await make(store)
    await store.write(APP, lambda tx: prompt(tx, sid, "a"))
    await die(store, "a")
    assert not await store.write(APP, lambda tx: take(tx, sid, "b"))
    await store.write(APP, lambda tx: adopt(tx, sid, "b", "cut off", 3))
    assert await store.write(APP, lambda tx: take(tx, sid, "b"))


async def test_a_session_is_let_go_of_when_it_has_nothing_to_run(store: Store) -> None:
    await join(store, "a", "b")
    sid = await make(store)
    assert await store.write(APP, lambda tx: take(tx, sid, "a"))
    fence = (await row_of(store, sid)).fence
    assert await store.write(APP, lambda tx: take(tx, sid, "a"))
    assert (await row_of(store, sid)).fence == fence, "it had it already"
    assert not await store.write(APP, lambda tx: take(tx, sid, "b"))
    assert await store.read_system(lambda view: view.held_sessions("a")) == [(APP, sid)]
    await store.write(APP, lambda tx: prompt(tx, sid, "a", starts=False))
    assert await store.read_system(lambda view: view.held_sessions("a")) == []
    assert not await store.write(APP, lambda tx: let_go(tx, sid, "a")), "a turn waits"
    assert not await store.write(APP, lambda tx: let_go(tx, sid, "b")), "it is another's"
    other = await make(store)
    assert await store.write(APP, lambda tx: take(tx, other, "a"))
    assert await store.write(APP, lambda tx: let_go(tx, other, "a"))
    assert (await row_of(store, other)).holder is None
    assert await store.write(APP, lambda tx: take(tx, other, "b"))


async def test_wishes_are_told_once_and_die_with_their_node(store: Store) -> None:
    await join(store, "a", "b")
    sid = await make(store)
    leave = WishRow(wish_id="w2", app_name=APP, session_id=sid, node="a", kind=WishKind.LEAVE, wished_at=2)
    stop = replace(leave, wish_id="w1", kind=WishKind.CANCEL, wished_at=1, turn_index=3, body="{}")
    stop = replace(stop, rollback=True)
    wishes = [leave, stop, replace(leave, wish_id="w3", node="b")]
    for wish in wishes:
        await store.write(APP, lambda tx, wish=wish: tx.add_wish(wish))  # type: ignore[misc]
    assert await store.read_system(lambda view: [view.has_wishes(n) for n in "abc"]) == [True, True, False]
    assert await store.write_system(lambda tx: tx.take_wishes("a")) == [stop, leave]
    assert await store.write_system(lambda tx: tx.take_wishes("a")) == []
    await die(store, "b")
    assert await store.write_system(lambda tx: tx.take_wishes("b")) == []


async def test_a_node_that_drains_lives_and_leaves_sessions_with_what_waits_in_them(store: Store) -> None:
    await join(store, "a", "b")
    busy, waiting = await make(store), await make(store)
    await store.write(APP, lambda tx: tx.change_session(waiting, folder="a"))
    await store.write(APP, lambda tx: prompt(tx, busy, "a"))
    await store.write(APP, lambda tx: prompt(tx, waiting, "b", starts=False))
    assert await store.write(APP, lambda tx: take(tx, waiting, "a"))
    assert await store.write_system(lambda tx: tx.drain("a"))
    assert not await store.write_system(lambda tx: tx.drain("nobody"))
    found = await store.read_system(lambda view: view.nodes())
    assert [row.state for row in found] == [NodeState.DRAINING, NodeState.UP]
    assert await store.write_system(lambda tx: tx.beat("a")), "it lives"
    assert await store.read(APP, lambda view: view.node_with("a")) is None, "but begins nothing"
    assert await store.read_system(lambda view: view.running_counts()) == {"a": 1}
    assert await store.read_system(lambda view: view.sessions_to_leave("a")) == [(APP, waiting)]
    assert not await store.write(APP, lambda tx: hand_over(tx, busy, "a")), "nothing waits there"
    assert (await row_of(store, busy)).holder == "a", "its turn runs"
    assert await store.write(APP, lambda tx: hand_over(tx, waiting, "a"))
    assert await store.read_system(lambda view: view.sessions_to_run("b")) == [(APP, waiting)]
    assert await store.write_system(lambda tx: tx.drain("a", is_over=True))
    assert await store.read(APP, lambda view: view.node_with("a")) == "a"
    assert await store.read_system(lambda view: view.sessions_to_run("b")) == []


async def test_what_a_node_tells_of_itself_stays_until_it_tells_something_else(store: Store) -> None:
    await join(store, "a")
    await store.write_system(lambda tx: tx.beat("a", {"agents": 2, "settings": {"lease_secs": "ab"}}))
    await store.write_system(lambda tx: tx.beat("a"))
    (found,) = await store.read_system(lambda view: view.nodes())
    assert (found.beat, found.tells) == (2, {"agents": 2, "settings": {"lease_secs": "ab"}})


async def test_a_login_code_is_taken_once_and_forgotten_in_time(store: Store) -> None:
    rows = [CodeRow(hash=bytes([n]), app_name=APP, token_id="t", ends_at=n) for n in (3, 1, 2)]
    for row in rows:
        await store.write_system(lambda tx, row=row: tx.add_login_code(row))  # type: ignore[misc]
    assert await store.read_system(lambda view: view.login_codes_of("t")) == [b"\x01", b"\x02", b"\x03"]
    assert await store.read_system(lambda view: view.login_code(b"\x02")) == rows[2]
    assert await store.write_system(lambda tx: tx.take_login_code(b"\x02")) == rows[2]
    assert await store.write_system(lambda tx: tx.take_login_code(b"\x02")) is None
    await store.write_system(lambda tx: tx.forget_login_codes(1))
    assert await store.read_system(lambda view: view.login_codes_of("t")) == [b"\x03"]


async def test_a_wish_may_be_about_a_session_that_is_gone(store: Store) -> None:
    await join(store, "a")
    gone = WishRow(
        wish_id="w", app_name=APP, session_id="gone", node="a", kind=WishKind.REMOVE_HOME, wished_at=1
    )
    await store.write_system(lambda tx: tx.add_wish(gone))
    assert await store.write_system(lambda tx: tx.take_wishes("a")) == [gone]
