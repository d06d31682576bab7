"""Spare agents: started for sessions that are still to come, so that no first prompt waits for a start.

After the first turn of a session in a folder of our own, one more agent of the same kind is started for the
same app, with a home and a folder that nobody uses yet. The next such session gets all of it, and its id.
Until then the session is there as one that nobody sees: what is not used in time is swept away as any deleted
session is, and so is what a crash leaves. A spare has a place in the pool, which it gives to anybody in need.
"""

import asyncio
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from clawdforge.core.clock import SECOND, Clock
from clawdforge.core.ids import new_id
from clawdforge.core.models.agents import Launch
from clawdforge.core.models.mcp import OperatorServers
from clawdforge.core.models.rows import SessionRow
from clawdforge.core.models.workspaces import Workspace
from clawdforge.core.ports import Agents, Homes, Snapshots, Store, Tx, Workspaces
from clawdforge.core.rules.launches import plan_launch
from clawdforge.core.rules.mcp_servers import plan_servers
from clawdforge.core.rules.pauses import check_pause
from clawdforge.core.running.early_sink import EarlySink
from clawdforge.core.running.pool import AgentPool, Prepared, Seat
from clawdforge.wire.errors import ForgeError

log = logging.getLogger(__name__)
SWEPT_AFTER_SECS: Final = 600.0
"""So long after its agent has gone to sleep what was made for a spare is kept."""
IN_TIME_SECS: Final = 120.0
"""A spare that is swept sooner than this is not given away."""


class Kind(NamedTuple):
    """What agents must have in common to stand in for each other."""

    app: str
    agent: str
    model: str | None
    plan_mode: bool


def kind_of(session: SessionRow) -> Kind:
    return Kind(session.app_name, session.agent, session.model, session.plan_mode)


@dataclass(eq=False)
class Spare:
    """One agent, the folders that it lives in, and the id that its session will have."""

    kind: Kind
    seat: Seat
    workspace: Workspace
    row: SessionRow = field(repr=False)

    @property
    def session_id(self) -> str:
        return self.seat.session_id

    @property
    def is_ready(self) -> bool:
        return self.seat.prepared is not None and self.seat.agent is not None and self.seat.agent.alive


class Spares:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        agents: Agents,
        homes: Homes,
        snapshots: Snapshots,
        workspaces: Workspaces,
        pool: AgentPool,
        mcp: OperatorServers,
        most: int,
        idle_secs: float,
    ) -> None:
        """`most` is how many there may be, of all kinds together."""
        self._store = store
        self._clock = clock
        self._agents = agents
        self._homes = homes
        self._snapshots = snapshots
        self._workspaces = workspaces
        self._pool = pool
        self._mcp = mcp
        self._most = most
        self._kept_micros = round((idle_secs + SWEPT_AFTER_SECS) * SECOND)
        self._spares: dict[Kind, Spare] = {}
        pool.listen(self.follow)

    def follow(self, session: SessionRow) -> None:
        """The first turn of this session is over: the next one of its kind may come soon."""
        kind = kind_of(session)
        self._forget_gone()
        spec = self._agents.spec(kind.agent)
        if kind in self._spares or not self._most or spec.callback or spec.checkpoints == "database":
            return  # a token to call us back with, or to get at a memory with, is that of one session
        seat = self._pool.try_spare(kind.app, new_id(), asyncio.get_running_loop().time())
        if seat is None:
            return  # others need the room
        while len(self._spares) >= self._most:
            oldest = next(iter(self._spares.values()))
            del self._spares[oldest.kind]
            self._pool.retire_agent(oldest.session_id)
        try:
            spare = self._plan(kind, seat)
        except OSError:
            log.warning("no spare agent: there is no folder for it", exc_info=True)
            self._pool.retire_agent(seat.session_id)
            return
        self._spares[kind] = spare
        seat.starting = asyncio.create_task(self._start(spare), name=f"spare {seat.session_id}")

    def take(self, kind: Kind) -> Spare | None:
        """A spare for a session that is about to be stored; nobody else gets it."""
        self._forget_gone()
        spare = self._spares.get(kind)
        if spare is None or not spare.is_ready or not self._is_kept(spare):
            return None
        del self._spares[kind]
        spare.seat.is_spare = False
        spare.seat.used_at = asyncio.get_running_loop().time()  # so that it is awake for the first prompt
        return spare

    def give_back(self, spare: Spare) -> None:
        """The session was refused."""
        if spare.kind in self._spares:
            self._pool.retire_agent(spare.session_id)
        else:
            spare.seat.is_spare = True
            self._spares[spare.kind] = spare

    def _forget_gone(self) -> None:
        """Those whose place was given to others, or that have ended by themselves."""
        for kind, spare in list(self._spares.items()):
            ended = spare.seat.prepared is not None and not spare.is_ready
            if ended or not self._pool.has(spare.seat):
                del self._spares[kind]
                if ended:
                    self._pool.retire_agent(spare.session_id)

    def _is_kept(self, spare: Spare) -> bool:
        until = spare.row.deleted_at
        return until is not None and until - self._clock.now() > IN_TIME_SECS * SECOND

    def _plan(self, kind: Kind, seat: Seat) -> Spare:
        now, workspace = self._clock.now(), self._workspaces.make(seat.session_id)
        row = SessionRow(
            app_name=kind.app,
            session_id=seat.session_id,
            agent=kind.agent,
            model=kind.model,
            plan_mode=kind.plan_mode,
            cwd=str(workspace.path),
            own_cwd=True,
            workspace_identity=workspace.identity,
            created_at=now,
            updated_at=now,
            deleted_at=now + self._kept_micros,
        )
        return Spare(kind, seat, workspace, row)

    async def _start(self, spare: Spare) -> None:
        try:
            await self._open(spare)
        except (ForgeError, OSError) as error:
            log.info("no spare agent: %s", error, extra={"session_id": spare.session_id})
        except Exception:  # the top of a task: nothing above could report it
            log.exception("a spare agent could not be started", extra={"session_id": spare.session_id})
        finally:
            spare.seat.starting = None
            if spare.seat.prepared is None or self._pool.waiting:
                if self._spares.get(spare.kind) is spare:
                    del self._spares[spare.kind]
                self._pool.retire_agent(spare.session_id)

    async def _open(self, spare: Spare) -> None:
        app, row = spare.kind.app, spare.row

        def add(tx: Tx) -> None:
            check_pause(tx, row.agent)
            tx.add_session(row)  # from now on the sweeper knows of it

        try:
            await self._store.write(app, add)
        except ForgeError:
            await asyncio.to_thread(self._workspaces.remove, row.session_id)
            raise
        servers = await self._store.read(app, lambda view: plan_servers(view, row, self._mcp))
        spec = self._agents.spec(row.agent)
        home: Path = await self._homes.prepare(row.session_id, spec)
        await self._snapshots.record_first(row)
        launch: Launch = plan_launch(row, spec, home, servers)
        sink = EarlySink()
        spare.seat.agent = await self._agents.driver(spec).open(launch, sink)
        spare.seat.used_at = asyncio.get_running_loop().time()
        spare.seat.prepared = Prepared(launch, sink)
