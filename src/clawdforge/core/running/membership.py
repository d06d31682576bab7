"""This node among those that share a store: it beats, and notices which of the others no longer do.

No clock is compared with another's. A node is dead when its beat stood still over a whole lease, as counted
by one that could read all the while; dead is for good, and whoever was declared dead goes on with a new name.
A node that cannot beat ends its agents before the others give it up.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final, Protocol

from clawdforge.core.model import Clock, SessionRow, new_id
from clawdforge.core.node_model import HOUSEKEEPING, NodeRow
from clawdforge.core.ports import Store, SystemTx
from clawdforge.wire.base import Micros
from clawdforge.wire.errors import StoreUnavailable
from clawdforge.wire.nodes import NodeState

log = logging.getLogger(__name__)
BEATS: Final = 6  # in a lease
GIVE_UP_PART: Final = 0.8  # of a lease: so long without a beat, agents are ended
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
        self._folders: dict[str, str] = {}  # of nodes that live
        self._seen: dict[str, tuple[int, int]] = {}  # of others: the last beat, and how often it was read
        self._beaten_at = 0.0
        self._has_given_up = False
        self._is_given_up = False  # by the others
        self._on_duty = asyncio.Event()
        self._off_duty = asyncio.Event()
        if not self.has_peers:
            self._on_duty.set()

    @property
    def has_peers(self) -> bool:
        """Whether there may be any."""
        return self._store.peers is not None

    @property
    def is_alone(self) -> bool:
        """Whether no other node lived a moment ago."""
        return self._living <= {self.node}

    @property
    def may_start(self) -> bool:
        """Whether turns may be started under this node's name: not while others may have given it up."""
        return not self._has_given_up and not self._is_given_up

    @property
    def is_on_duty(self) -> bool:
        return self._on_duty.is_set()

    @property
    def folder(self) -> str | None:
        """What tells this node's data folder from those of others; None where there can be no others."""
        return self._folder if self.has_peers else None

    def find_runner(self, session: SessionRow) -> str | None:
        """The other node, which lived a moment ago, that is to run a session: its holder, or its folder's."""
        for node in (session.holder, self._folders.get(session.folder or "")):
            if node is not None and node != self.node and node in self._living:
                return node
        return None

    def describe(self, at: Micros) -> NodeRow:
        return NodeRow(
            node=self.node, name=self.name, folder=self._folder, version=self._version, started_at=at
        )

    async def join(self, node: str | None = None) -> None:
        """Before this node claims anything, or anything more under another name."""
        if self._store.peers is None:
            return
        row = replace(self.describe(self._clock.now()), node=node or self.node)
        self._beaten_at = asyncio.get_running_loop().time()

        def work(tx: SystemTx) -> tuple[list[NodeRow], bool]:
            tx.add_node(row)
            return tx.nodes(), tx.take_duty(HOUSEKEEPING, row.node)

        nodes, is_on_duty = await self._store.write_system(work)
        self.node = row.node
        self._note(nodes, is_on_duty=is_on_duty)
        self._store.peers.start(self.node)

    async def leave(self) -> None:
        """After this node has ended its agents: what it held is free at once."""
        if self.has_peers:
            node = self.node
            with suppress(StoreUnavailable):  # then the others notice it by themselves
                await self._store.write_system(lambda tx: tx.remove_node(node))

    async def run(self, host: Host, take_over: Callable[[], Awaitable[None]]) -> None:
        """Beat for ever, and have taken over what dead nodes have left. No beat waits for that."""
        if not self.has_peers:
            await asyncio.get_running_loop().create_future()
        listening = asyncio.create_task(self._listen_for_silence(host), name="the silence of the store")
        taking = asyncio.create_task(_try(take_over, TAKING), name="taking over")
        try:
            while True:
                await asyncio.sleep(self._lease / BEATS)
                await _try(partial(self._beat_once, host), "a beat failed")
                if taking.done():
                    taking = asyncio.create_task(_try(take_over, TAKING), name="taking over")
        finally:
            listening.cancel()
            taking.cancel()

    async def _beat_once(self, host: Host) -> None:
        if not await self._beat():
            await self._come_back(host)
        elif self._has_given_up:
            self._has_given_up = False
            log.warning("this node can reach the store again")
        await self._bury()

    async def do_on_duty(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do what one node does for all, whenever that is this one. Ends when the work does."""
        while True:
            await self._on_duty.wait()
            doing = asyncio.ensure_future(work())
            leaving = asyncio.ensure_future(self._off_duty.wait())
            try:
                await asyncio.wait({doing, leaving}, return_when=asyncio.FIRST_COMPLETED)
                if doing.done():
                    return doing.result()
            finally:
                leaving.cancel()
                doing.cancel()
                await asyncio.wait({doing})

    async def _beat(self) -> bool:
        """False when this node was declared dead."""
        began, node = asyncio.get_running_loop().time(), self.node

        def work(tx: SystemTx) -> tuple[bool, list[NodeRow], bool]:
            lives = tx.beat(node)
            return lives, tx.nodes(), lives and tx.take_duty(HOUSEKEEPING, node)

        lives, nodes, is_on_duty = await self._store.write_system(work)
        self._note(nodes, is_on_duty=is_on_duty)
        if lives:
            self._beaten_at = began
        return lives

    def _note(self, nodes: list[NodeRow], *, is_on_duty: bool) -> None:
        alive = [row for row in nodes if row.state is not NodeState.DEAD]
        before_now, self._living = self._living, frozenset(row.node for row in alive)
        self._miss(before_now - self._living)
        self._folders = {row.folder: row.node for row in alive}
        before = self._seen
        self._seen = {}
        for row in alive:
            if row.node != self.node:
                beat, times = before.get(row.node, (row.beat, -1))
                self._seen[row.node] = (row.beat, times + 1 if beat == row.beat else 0)
        self._set_duty(is_on_duty=is_on_duty)

    def _miss(self, gone: frozenset[str]) -> None:
        """Whoever is gone may have written without telling us."""
        if self._store.peers is not None and gone - {self.node}:
            self._store.peers.look_everywhere()

    def _set_duty(self, *, is_on_duty: bool) -> None:
        (self._on_duty, self._off_duty)[not is_on_duty].set()
        (self._on_duty, self._off_duty)[is_on_duty].clear()

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
        self._has_given_up = self._is_given_up = False

    async def _listen_for_silence(self, host: Host) -> None:
        """A statement may wait for its answer for longer than a lease, so this waits for none."""
        while True:
            await asyncio.sleep(self._lease / BEATS / 4)
            self._give_up_late(host)

    def _give_up_late(self, host: Host) -> None:
        silent = asyncio.get_running_loop().time() - self._beaten_at
        if silent > GIVE_UP_PART * self._lease and not self._has_given_up and not self.is_alone:
            self._has_given_up = True
            self._set_duty(is_on_duty=False)
            log.error("the store was away for %.1f s; agents are ended, since others may go on", silent)
            host.give_up(CUT_OFF)


async def _try(work: Callable[[], Awaitable[None]], failure: str) -> None:
    try:
        await work()
    except StoreUnavailable as error:
        log.warning("%s: %s", failure, error.message)
    except Exception:  # the top of a task: the next beat tries again
        log.exception("%s", failure)
