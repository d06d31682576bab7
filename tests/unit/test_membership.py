"""A node among others: when it counts as dead, when it gives up by itself, and what it does on duty."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.ports import SystemTx
from clawdforge.core.ports.nodes import Peers
from clawdforge.core.running.membership import BEATS, GIVE_UP_PART, Membership
from clawdforge.stores.sqlite.store import SqliteStore
from clawdforge.wire.errors import StoreUnavailable
from tests.conformance.stores.samples import a_session
from tests.unit.rpc_peer import until

LEASE = 3.0
T = TypeVar("T")


class NoPeers:
    """There may be others, and none of them says anything."""

    def tell(self, node: str, app: str, session_id: str) -> None: ...
    def listen(self, listener: Callable[[str, str], None]) -> None: ...
    def announce(self, word: str) -> None: ...
    def heed(self, listener: Callable[[str], None]) -> None: ...
    def look_everywhere(self) -> None: ...
    def start(self, node: str) -> None: ...


class SharedStore(SqliteStore):
    """One that several nodes of one process use; while it is away, nothing is answered."""

    is_away = False
    answers: asyncio.Event | None = None  # what is written waits for it

    @property
    def peers(self) -> Peers:  # type: ignore[override]
        return NoPeers()

    async def write_system(self, work: Callable[[SystemTx], T]) -> T:
        if self.is_away:
            await asyncio.sleep(3600)
        if self.answers is not None:
            await self.answers.wait()
        return await super().write_system(work)


class Host:
    def __init__(self) -> None:
        self.gave_up = 0
        self.gave_up_at = 0.0

    def give_up(self, reason: str) -> None:
        assert reason
        self.gave_up += 1
        self.gave_up_at = asyncio.get_running_loop().time()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SharedStore]:
    opened = await SharedStore.open(tmp_path / "data", SystemClock())
    assert isinstance(opened, SharedStore)
    yield opened
    await opened.close()


async def joined(store: SharedStore, name: str) -> Membership:
    node = Membership(store, SystemClock(), name, f"{name}.lan", f"folder of {name}", "0", LEASE)
    await node.join()
    return node


async def nothing() -> None: ...


async def test_a_node_is_dead_when_its_beat_stood_still_over_a_whole_lease(store: SharedStore) -> None:
    watching, silent = await joined(store, "a"), await joined(store, "b")
    for _ in range(BEATS):
        assert await watching._beat()
        await watching._bury()
        assert await store.read("x", lambda view: view.is_alive("b")), "it had less than a lease"
    assert await watching._beat()
    await watching._bury()
    assert not await store.read("x", lambda view: view.is_alive("b"))
    assert not await silent._beat()


async def test_one_beat_is_enough_to_live_on(store: SharedStore) -> None:
    watching, slow = await joined(store, "a"), await joined(store, "b")
    for number in range(3 * BEATS):
        assert await watching._beat()
        await watching._bury()
        if number % (BEATS - 1) == 0:
            assert await slow._beat()


async def test_whoever_was_given_up_ends_its_agents_and_comes_back_with_another_name(
    store: SharedStore,
) -> None:
    host, node = Host(), await joined(store, "a")
    await store.write_system(lambda tx: tx.declare_dead("a", 0))
    running = asyncio.create_task(node.run(host, nothing))
    await until(lambda: node.node != "a")
    assert host.gave_up == 1
    await until(lambda: node.may_start)
    assert await store.read("x", lambda view: view.is_alive(node.node))
    running.cancel()


async def test_the_guard_knows_of_another_name_before_there_are_agents_again(store: SharedStore) -> None:
    """It may still be ending those from before, and would end the new ones with them."""
    told: list[tuple[bool, float]] = []
    host, node = Host(), await joined(store, "a")
    running = asyncio.create_task(
        node.run(host, nothing, lambda until_when: told.append((node.may_start, until_when)))
    )
    await until(lambda: bool(told))
    running.cancel()
    ((may_start, until_when),) = told
    assert may_start
    assert until_when >= node._beaten_at + GIVE_UP_PART * LEASE, "before the first beat"
    await store.write_system(lambda tx: tx.declare_dead("a", 0))
    await node._beat_once(host)
    assert node.node != "a"
    assert told[1:] == [(False, node._beaten_at + GIVE_UP_PART * LEASE)]
    assert node.may_start


async def test_a_node_that_is_alone_and_took_long_to_start_does_not_give_up(store: SharedStore) -> None:
    """Nobody else could have its sessions; its guard was told to end what it had just begun."""
    told: list[float] = []
    host, node = Host(), await joined(store, "a")
    node._beaten_at -= LEASE
    begun = asyncio.get_running_loop().time()
    running = asyncio.create_task(node.run(host, nothing, told.append))
    await until(lambda: len(told) > 2)  # it has looked at the clock twice since it began
    running.cancel()
    assert host.gave_up == 0
    assert min(told) >= begun + GIVE_UP_PART * LEASE


async def test_whoever_gave_up_and_was_given_up_starts_turns_again(store: SharedStore) -> None:
    host, node = Host(), await joined(store, "a")
    await joined(store, "b")
    await node._beat()
    node._beaten_at -= LEASE
    node._give_up_late(host)
    assert not node.may_start
    await store.write_system(lambda tx: tx.declare_dead("a", 1))
    await node._beat_once(host)
    assert node.may_start
    assert node.node != "a"


async def test_readers_look_again_when_a_node_is_gone(
    store: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have died between its commit and its word about that."""
    looks: list[int] = []
    monkeypatch.setattr(NoPeers, "look_everywhere", lambda _: looks.append(1))
    first, second = await joined(store, "a"), await joined(store, "b")
    await joined(store, "c")
    for _ in range(BEATS + 2):
        assert await first._beat()
        await first._bury()
        assert await second._beat()
    assert len(looks) == 2, "once at each of them"


async def test_a_node_that_gets_no_answer_ends_its_agents_before_a_lease_is_over(store: SharedStore) -> None:
    """Its beat waited for an answer for half a minute, and so did the look at how long it had waited."""
    host, node = Host(), await joined(store, "a")
    await joined(store, "b")
    await node._beat()
    store.is_away = True
    running = asyncio.create_task(node.run(host, nothing))
    began = asyncio.get_running_loop().time()
    await until(lambda: host.gave_up == 1)
    assert asyncio.get_running_loop().time() - began > LEASE / 2
    assert host.gave_up_at - node._beaten_at < LEASE, "the others wait for so long"
    assert not node.duty.is_on
    assert not node.may_start
    running.cancel()


async def test_a_node_gives_up_once_for_a_beat_that_took_long(store: SharedStore) -> None:
    """Others may have counted from its beginning, so it says nothing of the present moment."""
    node, _ = await joined(store, "a"), await joined(store, "b")
    assert await node._beat()  # it knows of b
    host, store.answers = Host(), asyncio.Event()
    running = asyncio.create_task(node.run(host, nothing))
    await until(lambda: host.gave_up == 1)
    await asyncio.sleep(LEASE / 2)  # so that the beat began longer ago than it may
    store.answers.set()
    await until(lambda: node.may_start)
    again = node._beaten_at
    await until(lambda: node._beaten_at != again)
    assert host.gave_up == 1
    running.cancel()


async def test_a_beat_that_is_answered_late_does_not_hide_that_the_guard_has_ended_the_agents(
    store: SharedStore,
) -> None:
    """Their end would be taken for a failure of theirs."""
    node, _ = await joined(store, "a"), await joined(store, "b")
    assert await node._beat()  # it knows of b
    host = node._host = Host()
    node._beaten_at -= LEASE
    assert await node._beat()
    assert host.gave_up == 1
    assert await node._beat()
    assert host.gave_up == 1, "the next one is in time"


async def test_a_slow_beat_takes_no_time_from_the_agents_of_a_node_that_is_alone(store: SharedStore) -> None:
    """Its guard is to end them when it stands still, and not because the store is slow."""
    node = await joined(store, "a")
    until_when: list[float] = []
    node._live_until = until_when.append
    store.answers = asyncio.Event()
    beating = asyncio.create_task(node._beat())
    await asyncio.sleep(0.1)
    node._looked_at = asyncio.get_running_loop().time()
    store.answers.set()
    assert await beating
    assert until_when == [node._looked_at + GIVE_UP_PART * LEASE]


async def test_a_guard_that_heard_of_a_beat_too_late_has_ended_the_agents(store: SharedStore) -> None:
    """The node waited for a processor between its look at the clock and its word to the guard."""
    node, _ = await joined(store, "a"), await joined(store, "b")
    host = node._host = Host()
    assert await node._beat()

    def hear(_until: float) -> None:
        node._told_until = 0.0  # as if the time of the word before was over by now

    node._live_until = hear
    assert await node._beat()
    assert host.gave_up == 1
    node._live_until = lambda _until: None
    assert await node._beat()
    assert host.gave_up == 1, "this one was in time"


async def test_whose_a_workspace_is_is_asked_anew(store: SharedStore) -> None:
    """A node that takes a session over knows of the other's death by the store, and not by its last beat."""
    node, other = await joined(store, "a"), await joined(store, "b")
    assert await node._beat()
    session = a_session(folder="folder of b")
    assert await node.has_owner(session)
    await store.write_system(lambda tx: tx.remove_node(other.node))
    assert not await node.has_owner(session)


async def test_a_node_that_is_alone_waits_for_the_store(store: SharedStore) -> None:
    host, node = Host(), await joined(store, "a")
    store.is_away = True
    running = asyncio.create_task(node.run(host, nothing))
    await asyncio.sleep(1.5 * LEASE)
    assert host.gave_up == 0, "nobody else could take its sessions"
    running.cancel()


async def test_what_is_done_for_all_is_done_by_one_and_goes_on_with_another(store: SharedStore) -> None:
    first, second = await joined(store, "a"), await joined(store, "b")
    doing: list[str] = []

    async def work(name: str) -> None:
        doing.append(name)
        try:
            await asyncio.sleep(3600)
        finally:
            doing.remove(name)

    tasks = [
        asyncio.create_task(one.duty.do(lambda name=name: work(name)))  # type: ignore[misc]
        for name, one in (("a", first), ("b", second))
    ]
    await until(lambda: doing == ["a"])
    await store.write_system(lambda tx: tx.declare_dead("a", 0))
    await first._beat()
    await second._beat()
    await until(lambda: doing == ["b"])
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert doing == []


async def test_a_take_over_that_fails_is_tried_again_and_keeps_no_beat_waiting(store: SharedStore) -> None:
    tries = 0

    async def take_over() -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise RuntimeError("a bug of ours")
        if tries == 2:
            raise StoreUnavailable
        await asyncio.sleep(3600)

    node = await joined(store, "a")
    running = asyncio.create_task(node.run(Host(), take_over))
    await until(lambda: tries == 3)
    before = (await store.read_system(lambda view: view.nodes()))[0].beat
    await asyncio.sleep(LEASE)
    assert (await store.read_system(lambda view: view.nodes()))[0].beat > before
    running.cancel()


async def test_whoever_drains_still_does_under_another_name(store: SharedStore) -> None:
    node = await joined(store, "a")
    await joined(store, "b")
    changes: list[bool] = []
    node.watch(lambda: changes.append(node.is_draining))
    await store.write_system(lambda tx: tx.drain("a"))
    await node.look()
    assert not node.may_start
    await store.write_system(lambda tx: tx.declare_dead("a", 0))
    await node._beat_once(Host())
    assert node.node != "a"
    assert node.is_draining
    assert node.find_taker("any session") == "b"
    assert changes == [True]


async def test_a_look_at_the_nodes_makes_nobody_dead(store: SharedStore) -> None:
    """Anybody who can connect may announce that there is something to look at, as often as he likes."""
    watching = await joined(store, "a")
    await joined(store, "b")
    for _ in range(3 * BEATS):
        await watching.look()
        await watching._bury()
    assert await store.read("x", lambda view: view.is_alive("b"))


async def test_whoever_is_to_drain_begins_turns_while_nobody_else_does(store: SharedStore) -> None:
    node = await joined(store, "a")
    await joined(store, "b")
    await store.write_system(lambda tx: tx.drain("a"))
    await store.write_system(lambda tx: tx.drain("b"))
    await node.look()
    assert node.may_start
    await store.write_system(lambda tx: tx.drain("b", is_over=True))
    await node.look()
    assert not node.may_start


async def test_the_guard_is_told_of_beats_until_there_are_none(store: SharedStore) -> None:
    """By when a beat began: what it was waited for is gone by the time that it is told of."""
    told: list[float] = []
    host, node = Host(), await joined(store, "a")
    await joined(store, "b")
    await node._beat()
    running = asyncio.create_task(node.run(host, nothing, told.append))
    await until(lambda: len(told) == 2)
    assert told[-1] == node._beaten_at + GIVE_UP_PART * LEASE
    store.is_away = True
    await until(lambda: host.gave_up == 1)
    assert host.gave_up_at >= told[-1], "the guard would have done the same"
    running.cancel()


async def test_a_node_that_is_alone_tells_its_guard_that_it_lives_without_the_store(
    store: SharedStore,
) -> None:
    told: list[float] = []
    host, node = Host(), await joined(store, "a")
    store.is_away = True
    running = asyncio.create_task(node.run(host, nothing, told.append))
    await until(lambda: bool(told) and told[-1] > node._beaten_at + 2 * LEASE)
    assert host.gave_up == 0
    node._looked_at -= LEASE  # it was stopped, and its guard has ended the agents
    node.notice_stop()
    assert host.gave_up == 1
    assert not node.may_start
    running.cancel()
