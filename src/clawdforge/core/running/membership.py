"""This node among those that share a store: it beats, and notices which of the others no longer do.

No clock is compared with another's. A node is dead when its beat stood still over a whole lease, as counted
by one that could read all the while; dead is for good, and whoever was declared dead goes on with a new name.
A node that cannot beat ends its agents before the others give it up. One that is stopped as a whole cannot do
that: its guard, a process of its own, does it then, and the node behaves as if it had.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from typing import Final, Protocol

from clawdforge.core.clock import Clock
from clawdforge.core.ids import new_id
from clawdforge.core.models.nodes import HOUSEKEEPING, NodeRow, Telling
from clawdforge.core.models.rows import SessionRow
from clawdforge.core.ports import Store, SystemTx
from clawdforge.core.rules.placement import choose
from clawdforge.core.running.duty import Duty
from clawdforge.wire.base import Micros
from clawdforge.wire.errors import StoreUnavailable
from clawdforge.wire.nodes import NodeState

log = logging.getLogger(__name__)
BEATS: Final = 6  # in a lease
GIVE_UP_PART: Final = 0.8  # of a lease: so long without a beat, agents are ended
LEASE: Final = "the lease"
"""The name of the task that beats. It ends last, when no agent is left."""
NODES: Final = "nodes"
"""Announced when the state of a node was changed by somebody."""
LOOK_SECS: Final = 0.1
"""After a look at the nodes there is none for so long, however often it is announced."""
TAKING: Final = "what dead nodes have left is not taken over yet"
CUT_OFF: Final = "this server could not reach the store for too long; what was said until then is kept"


class Host(Protocol):
    """What the node does with its sessions."""

    def give_up(self, reason: str) -> None:
        """End all agents: others may take their sessions."""
        ...


class Membership:
    """Where nobody else can use the store, this node has all duties, and everything else is empty."""

    def __init__(
        self, store: Store, clock: Clock, node: str, name: str, folder: str, version: str, lease: float
    ) -> None:
        self.node = node
        self.name = name
        self._folder = folder
        self._store = store
        self._clock = clock
        self._version = version
        self._lease = lease
        self._living: frozenset[str] = frozenset()
        self._state = NodeState.UP  # or draining, also under another name
        self.others: dict[str, Telling] = {}
        """Other nodes that begin turns, and what they told of themselves with their last beat."""
        self._takers: tuple[str, ...] = ()  # their names, in their order
        self._folders: dict[str, str] = {}  # of nodes that begin turns
        self._told = asyncio.Event()  # that there is something to look at
        self._watchers: list[Callable[[], None]] = []
        self._seen: dict[str, tuple[int, int]] = {}  # of others: the last beat, and how often it was read
        self._beaten_at = 0.0
        self._looked_at = 0.0  # whether this node is silent
        self._host: Host | None = None
        self.tell: Callable[[], Telling] = Telling
        """What this node tells of itself with each beat."""
        self._live_until: Callable[[float], None] = _tell_nobody
        self._told_until = float("inf")  # what the guard was told last: then it ends the agents by itself
        self._has_given_up = False
        self._is_given_up = False  # by the others
        self.duty = Duty(is_on=store.peers is None)
        if store.peers is not None:
            store.peers.heed(lambda word: self._told.set() if word in ("", NODES) else None)

    @property
    def has_peers(self) -> bool:
        """Whether there may be any."""
        return self._store.peers is not None

    @property
    def is_alone(self) -> bool:
        """Whether no other node lived a moment ago."""
        return self._living <= {self.node}

    @property
    def count(self) -> int:
        """How many nodes live, this one among them."""
        return len(self._living | {self.node})

    @property
    def may_start(self) -> bool:
        """Whether turns may be started under this node's name: not while others may have given it up, or are
        to begin them."""
        return not self.has_given_up and not self.is_draining

    @property
    def has_given_up(self) -> bool:
        """Whether this node has ended its agents, since others may have its sessions."""
        return self._has_given_up or self._is_given_up

    @property
    def is_draining(self) -> bool:
        """Whether this node leaves its sessions to others: it is to, and there are some."""
        return self._state is NodeState.DRAINING and bool(self._takers)

    def find_taker(self, session_id: str) -> str | None:
        """Who is told to begin what waits in a session that this node leaves; always the same one."""
        return choose(session_id, self._takers)

    def watch(self, watcher: Callable[[], None]) -> None:
        """It is called when this node begins to drain, and when it no longer does."""
        self._watchers.append(watcher)

    @property
    def folder(self) -> str | None:
        """What tells this node's data folder from those of others; None where there can be no others."""
        return self._folder if self.has_peers else None

    def find_runner(self, session: SessionRow, *, is_left: bool = False) -> str | None:
        """The other node, which lived a moment ago, that is to run a session: its holder, or its folder's.

        That of its folder may have left it to this one.
        """
        for node in (session.holder, None if is_left else self._folders.get(session.folder or "")):
            if node is not None and node != self.node and node in self._living:
                return node
        return None

    async def has_owner(self, session: SessionRow) -> bool:
        """Whether another node that begins turns has the session's own workspace.

        Whoever has just taken a session over may have learned of the other's death by that: what the last
        beat told would let it bring a workspace that is here, or miss one that was not published.
        """
        await self.look()
        return self._folders.get(session.folder or "", self.node) != self.node

    def describe(self, at: Micros) -> NodeRow:
        return NodeRow(
            node=self.node, name=self.name, folder=self._folder, version=self._version, started_at=at
        )

    async def join(self, node: str | None = None) -> None:
        """Before this node claims anything, or anything more under another name."""
        if self._store.peers is None:
            return
        row = replace(self.describe(self._clock.now()), node=node or self.node, state=self._state)
        self._beaten_at = asyncio.get_running_loop().time()

        def work(tx: SystemTx) -> tuple[list[NodeRow], bool]:
            tx.add_node(row)
            return tx.nodes(), tx.take_duty(HOUSEKEEPING, row.node)

        nodes, is_on_duty = await self._store.write_system(work)
        self._told_until = float("inf")  # there are no agents, and those to come have until it is told again
        self.node = row.node
        self._note(nodes, is_on_duty=is_on_duty)
        self._store.peers.start(self.node)

    async def leave(self) -> None:
        """After this node has ended its agents: what it held is free at once."""
        if self.has_peers:
            node = self.node
            with suppress(StoreUnavailable):  # then the others notice it by themselves
                await self._store.write_system(lambda tx: tx.remove_node(node))

    async def run(
        self,
        host: Host,
        take_over: Callable[[], Awaitable[None]],
        live_until: Callable[[float], None] | None = None,
    ) -> None:
        """Beat for ever, and have taken over what dead nodes have left. No beat waits for that.

        The guard is told until when this node may have agents, as the loop counts time.
        """
        if not self.has_peers:
            await asyncio.get_running_loop().create_future()
        self._host, self._live_until = host, live_until or _tell_nobody
        self._looked_at = asyncio.get_running_loop().time()
        self._tell_guard_of_beat()  # before there are agents: this node may be stopped before it beats
        listening = asyncio.create_task(self._listen_for_silence(host), name="the silence of the store")
        looking = asyncio.create_task(self._look_when_told(), name="looking at the nodes")
        taking = asyncio.create_task(_try(take_over, TAKING), name="taking over")
        try:
            while True:
                await asyncio.sleep(self._lease / BEATS)
                await _try(partial(self._beat_once, host), "a beat failed")
                if taking.done():
                    taking = asyncio.create_task(_try(take_over, TAKING), name="taking over")
        finally:
            for task in (listening, looking, taking):
                task.cancel()

    async def _beat_once(self, host: Host) -> None:
        if not await self._beat():
            await self._come_back(host)
        elif self._has_given_up and self._silent_secs < self._lease / 2:  # else it would give up again
            self._has_given_up = False
            log.warning("this node can reach the store again")
        await self._bury()

    async def _beat(self) -> bool:
        """False when this node was declared dead."""
        began, node = asyncio.get_running_loop().time(), self.node
        tells = asdict(self.tell())

        def work(tx: SystemTx) -> tuple[bool, list[NodeRow], bool]:
            lives = tx.beat(node, tells)
            return lives, tx.nodes(), lives and tx.take_duty(HOUSEKEEPING, node)

        lives, nodes, is_on_duty = await self._store.write_system(work)
        if lives:
            self.notice_stop()  # the guard may have been faster than the answer, which would hide why
        self._note(nodes, is_on_duty=is_on_duty)
        if lives:
            self._beaten_at = began
            self._tell_guard_of_beat()
        return lives

    def _tell_guard_of_beat(self) -> None:
        """Others may count from it; a node that is alone may have been slow since then."""
        self._tell_guard(max(self._beaten_at, self._looked_at) if self.is_alone else self._beaten_at)

    def _tell_guard(self, seen_at: float) -> None:
        """It may have heard this too late, however soon before it was decided: then the agents are gone."""
        until = seen_at + GIVE_UP_PART * self._lease
        self._live_until(until)
        self.notice_stop()
        self._told_until = until

    def _note(self, nodes: list[NodeRow], *, is_on_duty: bool) -> None:
        alive = [row for row in nodes if row.state is not NodeState.DEAD]
        before_now, self._living = self._living, frozenset(row.node for row in alive)
        self._miss(before_now - self._living)
        self._note_states(nodes)
        before = self._seen
        self._seen = {}
        for row in alive:
            if row.node != self.node:
                beat, times = before.get(row.node, (row.beat, -1))
                self._seen[row.node] = (row.beat, times + 1 if beat == row.beat else 0)
        self.duty.set(is_on=is_on_duty)

    def _note_states(self, nodes: list[NodeRow]) -> None:
        was_draining, here = self.is_draining, self.node
        own = [row.state for row in nodes if row.node == here and row.state is not NodeState.DEAD]
        self._state = own[0] if own else self._state
        up = [row for row in nodes if row.state is NodeState.UP]
        self._folders = {row.folder: row.node for row in up}
        self.others = {row.node: Telling.read(row.tells) for row in up if row.node != here}
        self._takers = tuple(sorted(self.others))
        if self.is_draining is not was_draining:
            for watcher in self._watchers:
                watcher()

    async def look(self) -> None:
        """See who begins turns. It is no beat, so that nobody counts as dead the sooner for it."""
        self._note_states(await self._store.read_system(lambda view: view.nodes()))

    async def _look_when_told(self) -> None:
        while True:
            await self._told.wait()
            self._told.clear()
            await _try(self.look, "the states of the nodes are not known yet")
            await asyncio.sleep(LOOK_SECS)

    def _miss(self, gone: frozenset[str]) -> None:
        """Whoever is gone may have written without telling us."""
        if self._store.peers is not None and gone - {self.node}:
            self._store.peers.look_everywhere()

    async def _bury(self) -> None:
        """Declare those dead whose beat stood still."""
        still = [(node, beat) for node, (beat, times) in self._seen.items() if times >= BEATS]

        def work(tx: SystemTx) -> list[str]:
            for node, beat in still:
                tx.declare_dead(node, beat)
            return [row.node for row in tx.nodes() if row.state is NodeState.DEAD]

        dead = await self._store.write_system(work) if still else []
        for node in dead:
            if node in self._living:
                log.warning("a node no longer beats; its sessions are free", extra={"node": node})
        self._miss(self._living & frozenset(dead))
        self._living -= frozenset(dead)

    async def forget_dead(self) -> None:
        """After what they left was taken over. Whoever is not known is dead as well."""
        nodes = await self._store.read_system(lambda view: view.nodes())
        dead = [row.node for row in nodes if row.state is NodeState.DEAD]

        def work(tx: SystemTx) -> None:
            for node in dead:
                tx.remove_node(node)

        if dead:
            await self._store.write_system(work)

    async def _come_back(self, host: Host) -> None:
        log.error("this node was given up by the others; it goes on under another name")
        self._is_given_up = True
        host.give_up(CUT_OFF)
        await self.join(new_id())
        self._tell_guard_of_beat()  # it may still be ending agents, and is to spare those to come
        self._has_given_up = self._is_given_up = False

    async def _listen_for_silence(self, host: Host) -> None:
        """A statement may wait for its answer for longer than a lease, so this waits for none."""
        while True:
            await asyncio.sleep(self._lease / BEATS / 4)
            self._give_up_late(host)
            if self.is_alone:  # nobody else could have its sessions, unless it is stopped and cannot say this
                self._tell_guard(self._looked_at)

    def notice_stop(self) -> None:
        """Give up before anybody wonders why the agents are gone, if it is because this node was stopped."""
        if self._host is not None:
            self._give_up_late(self._host)

    @property
    def _silent_secs(self) -> float:
        """Since the last beat began that was written; others may have counted from there."""
        return asyncio.get_running_loop().time() - self._beaten_at

    def _give_up_late(self, host: Host) -> None:
        now, most = asyncio.get_running_loop().time(), GIVE_UP_PART * self._lease
        silent, stood_still = self._silent_secs, now - self._looked_at > most
        self._looked_at = now
        is_ended = now >= self._told_until
        if self._has_given_up or not (is_ended or (silent > most and (stood_still or not self.is_alone))):
            return
        self._has_given_up = True
        self.duty.set(is_on=False)
        is_still = stood_still or is_ended
        why = "this node stood still, or the store was away," if is_still else "the store was away"
        log.error("%s for %.1f s; agents are ended, since others may go on", why, silent)
        host.give_up(CUT_OFF)


def _tell_nobody(_: float) -> None:
    """There is no guard."""


async def _try(work: Callable[[], Awaitable[None]], failure: str) -> None:
    try:
        await work()
    except StoreUnavailable as error:
        log.warning("%s: %s", failure, error.message)
    except Exception:  # the top of a task: the next beat tries again
        log.exception("%s", failure)
