"""One life of the simulated server: put together as `parts.py` does it, from start to crash or to the end.

After the storm comes the calm: no more faults, and everything that waits has to be answered in bounded time.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

from clawdforge.core.callbacks import CallbackTokens
from clawdforge.core.ports import Catalog, FolderSizes
from clawdforge.core.ports.trees import Trees
from clawdforge.core.ports.uploads import Uploads
from clawdforge.core.rules.quotas import Quotas
from clawdforge.core.rules.retention import Ages
from clawdforge.core.running.attendant import Times
from clawdforge.core.running.background import Background
from clawdforge.core.running.membership import Membership
from clawdforge.core.running.recovery import RecoveryService
from clawdforge.core.services.all import Bounds, Ports, build_engine, build_services
from clawdforge.core.services.runs import OneShot
from clawdforge.stores.sqlite.view import SqliteView
from clawdforge.wire.errors import ForgeAPIError, SessionClosed, SessionNotFound, StoreUnavailable
from clawdforge.wire.session import CreateSession, ForkRequest, OnInterrupt, PermissionMode, Retention
from clawdforge.wire.turn import Outcome, TurnRequest
from proofs.simulation.agent import SimAgents
from proofs.simulation.clients import Clients
from proofs.simulation.homes import SimHomes, SimSnapshots, SimWorkspaces
from proofs.simulation.store import SimStore
from proofs.simulation.story import Known, Story
from proofs.simulation.world import SLOW_SECS, World

STORM_SECS = 20.0
CALM_SECS = 600.0
LOOK_SECS = 0.25
SWEEP_SECS = 4.0
PACK_SECS = 2.0
IDLE_SECS = 2.0
READER_SECS = 15.0


class Life:
    def __init__(self, world: World, story: Story) -> None:
        self._world = world
        self._story = story
        self._store = SimStore(world)
        self._homes = SimHomes(world)
        bounds = Bounds(
            live_agents=world.plan.seats,
            quotas=Quotas(live_sessions=1000),
            file_bytes=1000,
            agent_idle_secs=IDLE_SECS,
            spare_agents=int(world.plan.seats > 2),
            permission_secs=5.0,
            times=Times(turn=10.0, cancel_grace=1.0, store_patience=5.0),
            ages=Ages(idle=30.0, closed=30.0, upload=1e6, event=PACK_SECS),
        )
        nothing: Any = None
        ports = Ports(
            store=self._store,
            clock=world,
            agents=SimAgents(world),
            catalog=cast("Catalog", nothing),
            homes=self._homes,
            snapshots=SimSnapshots(world),
            trees=cast("Trees", nothing),
            workspaces=SimWorkspaces(),
            sizes=cast("FolderSizes", nothing),  # nobody measures here
            uploads=cast("Uploads", nothing),
            program=cast("OneShot", nothing),
            callbacks=CallbackTokens(""),
        )
        node = Membership(self._store, world, world.new_id(), "sim", "sim", "0", 10.0)
        self._engine = build_engine(ports, bounds, node, Background())
        self._services = build_services(ports, bounds, self._engine, "", {})
        self._recovery = RecoveryService(self._store, world, self._engine.supervisor, (self._homes,))
        self._clients = Clients(world, story, self._services)

    async def run(self) -> None:
        """Raises StoreUnavailable where a server could not start; it is started again."""
        await self._recovery.end_interrupted_turns()
        await self._recovery.note_folders()
        beside = {
            "idle agents": asyncio.create_task(self._engine.supervisor.sleep_idle(1.0)),
            "sweeper": asyncio.create_task(self._services.sweeper.run(SWEEP_SECS)),
            "finisher": asyncio.create_task(self._services.finisher.run()),
            "packer": asyncio.create_task(self._services.packer.run()),
        }
        folders = asyncio.create_task(self._recovery.set_aside_unknown_folders())
        await self._recovery.wake_all()
        await self._create_sessions()
        readers = [asyncio.create_task(self._clients.follow(each)) for each in self._story.readers]
        clients = [asyncio.create_task(self._clients.run(n)) for n in range(len(self._world.plan.clients))]
        await asyncio.wait({*clients, folders}, timeout=STORM_SECS)
        self._world.calm = True
        self._world.note("calm")
        await self._settle(clients, beside)
        if not self._world.violations:
            await self._probe(beside)
        await self._catch_up(readers)
        await self._leave(beside)

    async def _create_sessions(self) -> None:
        for number in range(len(self._story.sessions), len(self._world.plan.sessions)):
            app, mode, then = self._world.plan.sessions[number]
            request = CreateSession(
                permission_mode=PermissionMode(mode),
                on_interrupt=OnInterrupt(then),
                retention=Retention.TTL if number % 3 == 2 else Retention.KEEP,
            )
            made = await self._services.sessions.create(app, request)
            self._story.sessions.append(Known(app, made.row.session_id))

    async def _settle(self, clients: list[asyncio.Task[None]], beside: dict[str, asyncio.Task[None]]) -> None:
        """Every request answers, every worker leaves, every background task lives."""
        _, left = await asyncio.wait(clients, timeout=CALM_SECS) if clients else (set(), set())
        if left:
            self._world.violate(f"never answered: {sorted(self._clients.doing.values())}")
        for task in clients:
            if task.done() and task.exception() is not None:
                self._world.violate(f"a client broke off: {task.exception()!r}")
        supervisor = self._engine.supervisor
        await self._until("the store never comes back", lambda: self._store.health() is None)
        await self._until("a worker never leaves", lambda: supervisor.is_idle and not supervisor._reserved)
        await self._until("a queued turn is started by nobody", lambda: not self._count_queued())
        self._need_alive(beside)

    def _count_queued(self) -> int:
        """Turns that wait in any session: the next prompt would bring them along, but must not be needed."""
        views = ((SqliteView(self._world.disk.db, one.app), one.session_id) for one in self._story.sessions)
        return sum(view.count_queued(session_id) for view, session_id in views)

    def _need_alive(self, beside: dict[str, asyncio.Task[None]]) -> None:
        for name, task in beside.items():
            if task.done():
                self._world.violate(f"the background task of {name} has ended: {task.exception()!r}")

    async def _probe(self, beside: dict[str, asyncio.Task[None]]) -> None:
        """Every open session still works: it answers a prompt, and can be forked, closed and swept."""
        if self._world.has_struck("slow"):
            # The end of an agent that began in the storm may take longer than a turn may.
            await asyncio.sleep(SLOW_SECS[1])
        for number, known in enumerate(list(self._story.sessions)):
            await self._bounded(f"a prompt in s{number}", self._ask(known, number))
        number = self._world.chance.randrange(len(self._story.sessions))
        await self._bounded(f"a fork of s{number}", self._fork(self._story.sessions[number]))
        for number, known in enumerate(list(self._story.sessions)):
            await self._bounded(f"the close of s{number}", self._services.sessions.close(*_both(known)))
        first = self._story.sessions[0]
        await self._bounded("the deletion of s0", self._services.sessions.delete(*_both(first)))
        self._story.deleted.add(first.session_id)
        await self._bounded("a sweep", self._services.sweeper.sweep())
        if first.session_id in self._world.disk.homes:
            self._world.violate("the home of a deleted session was not swept")
        pool = self._engine.pool
        await self._until(
            "a place never comes back", lambda: not (pool._slots.taken or pool._seats or pool._closing)
        )
        self._need_alive(beside)

    async def _ask(self, known: Known, number: int) -> None:
        state = await self._services.sessions.get(*_both(known))
        if state.row.closed_at is not None:
            return
        request = TurnRequest(prompt=f"probe{number} done")
        done = await self._services.turns.submit(*_both(known), request, f"probe {number}")
        turn = await self._services.turns.wait(*_both(known), done.turn.turn_index)
        if turn.outcome is not Outcome.COMPLETED:
            self._world.violate(f"a session no longer works: {turn.outcome} {turn.error}")

    async def _fork(self, known: Known) -> None:
        made = await self._services.forks.fork(*_both(known), ForkRequest())
        await self._services.sessions.close(known.app, made.row.session_id)

    async def _bounded(self, what: str, work: Awaitable[object]) -> None:
        task = asyncio.ensure_future(work)
        await asyncio.wait({task}, timeout=CALM_SECS)
        if not task.done():
            self._world.violate(f"{what} is never answered")
        elif isinstance(error := task.exception(), ForgeAPIError):
            if not isinstance(error, SessionNotFound | SessionClosed):  # the sweeper may have been first
                self._world.violate(f"{what} is refused: {error!r}")
        elif error is not None:
            self._world.violate(f"{what} ended with {error!r}")

    async def _until(self, words: str, good: Callable[[], bool]) -> None:
        loop = self._world.loop
        end = loop.time() + CALM_SECS
        while not good():
            if loop.time() > end:
                self._world.violate(words)
                return
            await asyncio.sleep(LOOK_SECS)

    async def _catch_up(self, readers: list[asyncio.Task[None]]) -> None:
        """Give readers time to see the end of the log; the invariants compare."""
        if not readers:
            return
        end = self._world.loop.time() + READER_SECS
        while not self._have_seen_all() and self._world.loop.time() < end:
            await asyncio.sleep(LOOK_SECS)
        for task in readers:
            task.cancel()
        await asyncio.wait(readers)
        for task in readers:
            if not task.cancelled() and task.exception() is not None:
                self._world.violate(f"a reader broke off: {task.exception()!r}")

    def _have_seen_all(self) -> bool:
        """Whether no reader waits for more; one that saw too much or the wrong thing is not waited for."""
        sessions = self._story.sessions
        for reader in self._story.readers:
            known = sessions[reader.slot % len(sessions)]
            row = SqliteView(self._world.disk.db, known.app).session(known.session_id)
            if row is not None and not reader.is_over and len(reader.copy) < row.head:
                return False
        return True

    async def _leave(self, beside: dict[str, asyncio.Task[None]]) -> None:
        """As a server ends: nothing of any agent is left, and nobody is remembered."""
        await self._bounded("the end of the server", self._engine.supervisor.stop(1.0))
        for task in beside.values():
            task.cancel()
        await asyncio.wait(beside.values())
        await self._bounded("the last copies", self._homes.close())
        if self._world.violations:
            return
        living = sum(map(len, self._world.living.values()))
        left = {
            "agents": living,
            "workers": len(self._engine.supervisor._workers),
            "tails of readers": len(self._services.log._tails),
            "waiting permissions": len(self._engine.permissions._waiting),
            "expected answers": len(self._engine.answers._due),
        }
        for name, count in left.items():
            if count:
                self._world.violate(f"{count} {name} left when the server ends")


def _both(known: Known) -> tuple[str, str]:
    return known.app, known.session_id


CANNOT_START = (StoreUnavailable,)
