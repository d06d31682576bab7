"""Brings a session's agent to life for a turn: carries out the plan of `rules/opening.py`.

The home and the workspace are put in order, the driver starts the agent, and the new context is recorded.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace

from clawdforge.core.callbacks import CallbackTokens
from clawdforge.core.clock import Clock
from clawdforge.core.models.agents import Launch
from clawdforge.core.models.events import draft
from clawdforge.core.models.mcp import McpLaunch, OperatorServers
from clawdforge.core.models.rows import FileRow, SessionRow, TurnRow
from clawdforge.core.ports import Agents, Homes, LeaseLost, LiveAgent, Snapshots, Store, Tx, View
from clawdforge.core.ports.threads import BegunThread, GraphThreads
from clawdforge.core.rules import memory
from clawdforge.core.rules.launches import plan_launch
from clawdforge.core.rules.leases import check_lease, note_folder
from clawdforge.core.rules.mcp_servers import plan_servers
from clawdforge.core.rules.opening import (
    Context,
    Opening,
    describe_context,
    plan_opening,
    remind_of_cancelled,
)
from clawdforge.core.rules.turns import need_session
from clawdforge.core.running.arrivals import Arrivals
from clawdforge.core.running.carried_uploads import CarriedUploads
from clawdforge.core.running.known_workspaces import KnownWorkspaces
from clawdforge.core.running.outside_sink import OutsideSink
from clawdforge.core.running.pool import AgentPool, Prepared
from clawdforge.core.running.running_turn import RunningTurn
from clawdforge.wire.admin import WaitsFor
from clawdforge.wire.base import Json
from clawdforge.wire.errors import Conflict, UnknownFile, Unsupported, WorkspaceChanged
from clawdforge.wire.event import EventType
from clawdforge.wire.local import ENV_TOKEN, ENV_URL
from clawdforge.wire.quirks import Quirks

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReadyAgent:
    """An agent whose memory is in order, and what is handed to it."""

    agent: LiveAgent
    prompt: str
    preface: str = ""


class Opener:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        agents: Agents,
        homes: Homes,
        snapshots: Snapshots,
        known: KnownWorkspaces,
        hold_others: Callable[[SessionRow], AbstractAsyncContextManager[None]],
        pool: AgentPool,
        callbacks: CallbackTokens,
        mcp: OperatorServers,
        uploads: CarriedUploads,
        arrivals: Arrivals | None = None,
        threads: GraphThreads | None = None,
    ) -> None:
        """`hold_others` keeps everybody else in a session's folder waiting.

        `arrivals` are what other nodes have published; None where there can be none.
        """
        self._store = store
        self._clock = clock
        self._agents = agents
        self._homes = homes
        self._snapshots = snapshots
        self._known = known
        self._hold_others = hold_others
        self._pool = pool
        self._callbacks = callbacks
        self._mcp = mcp
        self._uploads = uploads
        self._arrivals = arrivals
        self._threads = threads

    async def look_again(self, turn: RunningTurn) -> RunningTurn:
        """The turn with its session as it is now: an attempt to run it may have begun a context."""
        session = await self._store.read(turn.app, lambda view: need_session(view, turn.session_id))
        return replace(turn, started=replace(turn.started, session=session))

    async def make_ready(self, turn: RunningTurn, *, again: bool = False) -> ReadyAgent:
        """Use the live agent if it is in the right context and has the right model; otherwise start one.

        An agent that was given the prompt before may remember it, so `again` takes one that was not.
        """
        turn, arrived = await self._bring_files(turn)
        turn = await self._confirm_workspace(turn)
        turn.progress.wait_for(WaitsFor.HOME)
        prompt = await self._attach_files(turn)
        agent = turn.seat.agent
        wanted = (turn.session.context, turn.session.model)
        fits = agent is not None and agent.alive and (turn.seat.context, turn.seat.model) == wanted
        if agent is not None and fits and not again:
            return ReadyAgent(agent, prompt, await self._remind(turn) or turn.seat.untold)
        prepared = turn.seat.prepared
        if prepared is None or again or turn.session.context_plan != memory.NEW:
            prepared = None
            await self._pool.drop_agent(turn.seat)
        agent, turn.seat.untold = await self._open(turn, prepared, again=again, arrived=arrived)
        if turn.index == 1 and turn.session.own_cwd:
            turn.seat.first_of = turn.session
        return ReadyAgent(agent, prompt, turn.seat.untold)

    async def _remind(self, turn: RunningTurn) -> str:
        if not self._agents.spec(turn.session.agent).quirks.get("forgets_cancelled"):
            return ""
        room = self._quirks_of(turn).transcript_chars
        return await self._store.read(
            turn.app, lambda view: remind_of_cancelled(view, turn.session, turn.started.turn, room)
        )

    def _quirks_of(self, turn: RunningTurn) -> Quirks:
        return Quirks.model_validate(self._agents.spec(turn.session.agent).quirks)

    async def _bring_files(self, turn: RunningTurn) -> tuple[RunningTurn, int | None]:
        """The turn with its session's files on this node, and whose home came; see `Arrival`."""
        if self._arrivals is None or turn.seat.agent is not None:
            return turn, None
        session = turn.session
        is_ours = session.folder in (None, self._arrivals.here)
        turn.progress.wait_for(WaitsFor.HOME)
        is_left = not is_ours and not await self._arrivals.belongs_elsewhere(session)
        is_here = is_ours or (is_left and self._known.is_here(session))
        arrival = await self._arrivals.bring(turn, is_workspace_here=is_here)
        if arrival.turn is not turn:
            turn.seat.arrived = arrival.turn.session
        remembers_elsewhere = self._agents.spec(session.agent).checkpoints == "database"
        return arrival.turn, None if remembers_elsewhere else arrival.home_of

    async def _confirm_workspace(self, turn: RunningTurn) -> RunningTurn:
        """The turn, if it runs in the session's own folder; an agent that lives elsewhere is of no use."""
        try:
            session = await self._known.confirm(turn.session, turn.started.fence)
        except WorkspaceChanged:
            await self._pool.drop_agent(turn.seat)
            raise
        if session.folder is not None and turn.seat.agent is None:
            await self._note_folder(turn)
        if session.workspace_identity != turn.session.workspace_identity:
            turn.seat.arrived = session
        if session is turn.session:
            return turn
        return replace(turn, started=replace(turn.started, session=session))

    async def _note_folder(self, turn: RunningTurn) -> None:
        """With several nodes: a workspace that is here is run here from now on, whoever made it."""
        session_id, fence, node = turn.session_id, turn.started.fence, turn.session.holder or ""
        here = await self._store.read(turn.app, lambda view: view.folder_of(node))
        if here != turn.session.folder:
            await self._store.write(turn.app, lambda tx: note_folder(tx, session_id, fence))

    async def _attach_files(self, turn: RunningTurn) -> str:
        """The prompt, with the files that came with it put where the agent can read them."""
        row = turn.started.turn
        if not row.files:
            return row.prompt
        files = await self._store.read(turn.app, lambda view: _need_files(view, row))
        async with self._uploads.bring(files) as here:
            paths = await self._homes.attach(turn.session_id, here)
        return memory.name_files(row.prompt, paths)

    async def _open(
        self, turn: RunningTurn, prepared: Prepared | None, *, again: bool, arrived: int | None = None
    ) -> tuple[LiveAgent, str]:
        def plan(view: View) -> tuple[Opening, tuple[McpLaunch, ...]]:
            opening = plan_opening(view, turn.session, turn.started.turn, again=again, arrived=arrived)
            return opening, plan_servers(view, turn.session, self._mcp)

        opening, servers = await self._store.read(turn.app, plan)
        launch = await self._prepare(turn, opening, servers, prepared)
        agent = await self._start_agent(turn, opening, launch, prepared)
        how, known, answered = agent.how, agent.remembered, agent.answered
        room = self._quirks_of(turn).transcript_chars
        context = await self._store.read(
            turn.app, lambda view: describe_context(view, opening, how, known, answered, room)
        )
        await self._record_context(turn, agent, context)
        turn.seat.context, turn.seat.model = context.number, turn.session.model
        return agent, context.preface

    async def _prepare(
        self,
        turn: RunningTurn,
        opening: Opening,
        servers: tuple[McpLaunch, ...],
        prepared: Prepared | None,
    ) -> Launch:
        """Home and workspace as the plan wants them. One that an agent lives in already is in order."""
        session = turn.session
        spec = self._agents.spec(session.agent)
        if prepared is not None:
            home = prepared.launch.home
        else:
            home = await self._homes.prepare(session.session_id, spec)
        load = opening.load
        if opening.copy_of is not None:
            load = await self._restore_home(turn, opening, opening.copy_of)
        if opening.files is not None:
            await self._restore_files(turn, opening.files)
        env = self._make_token(turn) if spec.callback else {}
        if spec.checkpoints == "database" and self._threads is not None:
            begun = await self._begin_thread(self._threads, turn, load)
            load, env = begun.load, {**env, **begun.env}
        return replace(
            plan_launch(session, spec, home, servers),
            agent_session_id=load,
            counter=opening.counter,
            env=env,
        )

    async def _begin_thread(self, threads: GraphThreads, turn: RunningTurn, load: str | None) -> BegunThread:
        """Our claim may be lost, with the end of a log that a standby did not have, and still be the larger
        number: so whether it is the session's is asked before it lets a graph in, and others out."""
        session_id, fence = turn.session_id, turn.started.fence
        await self._store.write(turn.app, lambda tx: check_lease(tx, session_id, fence))
        try:
            return await threads.begin(session_id, fence, load)
        except LeaseLost:  # somebody has claimed it since, or one database was put back to an earlier time
            await self._store.write(turn.app, lambda tx: check_lease(tx, session_id, fence))
            return await threads.begin(session_id, fence, load, is_certain=True)

    def _make_token(self, turn: RunningTurn) -> dict[str, str]:
        """What the agent needs to call us back as itself."""
        token = self._callbacks.make(turn.app, turn.session_id)
        return {ENV_URL: self._callbacks.url, ENV_TOKEN: token}

    async def _restore_home(self, turn: RunningTurn, opening: Opening, boundary: int) -> str | None:
        """Without a copy of that turn the home is emptied, so that undone turns do not stay in it.

        Where a prompt is only given again nothing was undone, and it stays: it may be all that there is.
        """
        load = await self._homes.restore(turn.session_id, boundary)
        if load is not None or not boundary:
            return load
        for source in opening.sources:
            load = await self._homes.branch(source, turn.session_id, boundary)
            if load is not None:
                return load
        if not opening.again:
            await self._homes.restore(turn.session_id, 0)
        return None

    async def _restore_files(self, turn: RunningTurn, tree: str) -> None:
        """Finish what an undo of files began before a crash; it waits while somebody else works there."""
        session_id = turn.session_id
        async with self._hold_others(turn.session):
            try:
                await self._snapshots.restore(turn.session, tree)
            except (Conflict, Unsupported):
                log.exception("the workspace could not be put back", extra={"session_id": session_id})
        await self._store.write(turn.app, lambda tx: tx.change_session(session_id, files_plan=None))

    async def _start_agent(
        self, turn: RunningTurn, opening: Opening, launch: Launch, prepared: Prepared | None
    ) -> LiveAgent:
        """Start the agent, unless it is there; if it comes up with the wrong memory, start it with none."""
        snapshot = asyncio.create_task(
            self._snapshots.record_first(turn.session)
        )  # before the agent works there
        try:
            agent = await self._take_over(turn, launch, prepared) or await self._spawn_agent(turn, launch)
        finally:
            await snapshot
        if opening.can_trust(agent.how, agent.remembered):
            return agent
        log.warning(
            "the agent lost its memory; it is given the transcript", extra={"session_id": turn.session_id}
        )
        await self._pool.drop_agent(turn.seat)
        return await self._spawn_agent(turn, replace(launch, agent_session_id=None))

    async def _take_over(
        self, turn: RunningTurn, launch: Launch, prepared: Prepared | None
    ) -> LiveAgent | None:
        """The agent that was started for this session before it was there, if it is what the turn needs."""
        agent = turn.seat.agent
        if prepared is None:
            return None
        if agent is None or not agent.alive or prepared.launch != launch:
            await self._pool.drop_agent(turn.seat)
            await self._homes.prepare(turn.session_id, launch.agent)  # it may be another agent's by now
            return None
        turn.seat.prepared = None
        await prepared.sink.pass_on(self._sink_of(turn))
        return agent

    async def _spawn_agent(self, turn: RunningTurn, launch: Launch) -> LiveAgent:
        turn.progress.wait_for(WaitsFor.START)
        turn.seat.agent = await self._agents.driver(launch.agent).open(launch, self._sink_of(turn))
        return turn.seat.agent

    def _sink_of(self, turn: RunningTurn) -> OutsideSink:
        return OutsideSink(self._store, self._clock, turn.app, turn.session_id, turn.session.holder)

    async def _record_context(self, turn: RunningTurn, agent: LiveAgent, context: Context) -> None:
        session_id, turn_index, fence = turn.session_id, turn.index, turn.started.fence
        expected, agent_session_id = turn.session.context, agent.agent_session_id
        number, here = context.number, None if self._arrivals is None else self._arrivals.here
        fields: Json = {"number": number, "how": context.how, "agent": turn.session.agent}
        if agent.mcp_servers:
            fields["mcp_servers"] = list(agent.mcp_servers)
        event = draft(EventType.CONTEXT_STARTED, None, self._clock.now(), fields)

        def work(tx: Tx) -> None:
            if need_session(tx, session_id).context != expected:
                raise LeaseLost  # history was changed under a turn that no longer holds
            tx.change_session(
                session_id,
                context=number,
                context_plan=memory.LOAD,
                agent_session_id=agent_session_id,
                home_at=here,
            )
            if number != expected:
                tx.change_turn(session_id, turn_index, context=number)
            tx.append(session_id, [event], fence=fence)

        await self._store.write(turn.app, work)


def _need_files(view: View, turn: TurnRow) -> list[FileRow]:
    rows = [view.file(token) for token in turn.files]
    found = [row for row in rows if row is not None]
    if len(found) < len(rows):
        raise UnknownFile("a file of this turn was deleted before the turn began; upload it again")
    return found
