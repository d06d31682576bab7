"""Attends one turn from start to end: the agent made ready, the prompt, a stop, a time-out, a failure."""

import asyncio
import logging
from dataclasses import dataclass, field, replace
from pathlib import Path

from clawdforge.core.model import Answer, Clock, FileRow, Launch, SessionRow, TurnRow, draft
from clawdforge.core.ports import Agents, Homes, LeaseLost, LiveAgent, Snapshots, Store, Tx, View
from clawdforge.core.rules import memory
from clawdforge.core.rules.turns import Ending, Started, need_session
from clawdforge.core.running.permissions import PermissionService
from clawdforge.core.running.pool import AgentPool, Place
from clawdforge.core.running.recorder import OutsideSink, TurnRun
from clawdforge.wire.base import Json
from clawdforge.wire.error_codes import ErrorCode
from clawdforge.wire.errors import AgentFailed, Conflict, ForgeAPIError, UnknownFile, Unsupported
from clawdforge.wire.event import EventType
from clawdforge.wire.turn import Outcome

log = logging.getLogger(__name__)
TRANSCRIPT_MESSAGES = 5000
BREAK_OFF_SECS = 0.5


@dataclass(eq=False)
class Stop:
    """Somebody's wish that a turn ends, and the moment it has."""

    wanted: asyncio.Event = field(default_factory=asyncio.Event)
    done: asyncio.Event = field(default_factory=asyncio.Event)
    outcome: Outcome = Outcome.CANCELLED
    reason: str = "cancelled"
    rollback: bool = False

    def set(self, outcome: Outcome, reason: str, *, rollback: bool = False) -> None:
        if not self.wanted.is_set():
            self.outcome, self.reason, self.rollback = outcome, reason, rollback
            self.wanted.set()


@dataclass(frozen=True, slots=True)
class Times:
    """How long things may take, in seconds."""

    turn: float
    cancel_grace: float
    store_patience: float = 30.0


class Attendant:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        agents: Agents,
        homes: Homes,
        snapshots: Snapshots,
        pool: AgentPool,
        permissions: PermissionService,
        times: Times,
    ) -> None:
        self._store = store
        self._clock = clock
        self._agents = agents
        self._homes = homes
        self._snapshots = snapshots
        self._pool = pool
        self._permissions = permissions
        self._times = times

    async def attend(self, place: Place, app: str, started: Started, stop: Stop) -> TurnRow:
        """Returns when the turn has ended and that is on stable storage."""
        run = TurnRun(self._store, self._clock, self._permissions, app, started)
        writer = asyncio.create_task(run.write_all(self._times.store_patience))
        try:
            ending = await self._drive(place, app, started, stop, run, writer)
        except LeaseLost:
            writer.cancel()
            raise
        return await run.end(writer, ending, rollback=stop.rollback)

    async def _drive(
        self,
        place: Place,
        app: str,
        started: Started,
        stop: Stop,
        run: TurnRun,
        writer: asyncio.Task[None],
    ) -> Ending:
        work = asyncio.create_task(self._converse(place, app, started, run))
        wanted = asyncio.create_task(stop.wanted.wait())
        seconds = started.turn.timeout_secs or self._times.turn
        try:
            await asyncio.wait({work, wanted, writer}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return _ending(work, stop, run.session_id)
            if writer.done():
                await self._break_off(place, work)
                if isinstance(writer.exception(), LeaseLost):
                    raise LeaseLost
                return Ending(
                    outcome=Outcome.INTERRUPTED,
                    error="the store could not be written for too long; what was said until then is kept",
                    code=ErrorCode.TURN_INTERRUPTED,
                )
            timed_out = not wanted.done()
            await self._ask_to_stop(place, work)
            if timed_out:
                return Ending(
                    outcome=Outcome.TIMED_OUT,
                    error=f"the turn took longer than {seconds:g} s and was ended; the session stays usable",
                    code=ErrorCode.TURN_TIMED_OUT,
                )
            return _ending(work, stop, run.session_id)
        finally:
            wanted.cancel()

    async def _ask_to_stop(self, place: Place, work: asyncio.Task[Answer]) -> None:
        """Ask the agent, wait a little, then end it."""
        if place.agent is not None and place.agent.alive:
            await place.agent.cancel()
            await asyncio.wait({work}, timeout=self._times.cancel_grace)
        if not work.done():
            await self._break_off(place, work)

    async def _break_off(self, place: Place, work: asyncio.Task[Answer]) -> None:
        """A cancel may be lost where an agent is just coming up: then there is one to end after all."""
        while not work.done():
            work.cancel()
            await self._pool.drop_agent(place)
            await asyncio.wait({work}, timeout=BREAK_OFF_SECS)

    async def _converse(self, place: Place, app: str, started: Started, run: TurnRun) -> Answer:
        live, prompt, preface = await self._ready(place, app, started)
        try:
            return await live.prompt(prompt, run, preface=preface)
        finally:
            if not live.alive:
                await self._pool.drop_agent(place)

    async def _ready(self, place: Place, app: str, started: Started) -> tuple[LiveAgent, str, str]:
        """The session's agent with its memory in order, the text to hand to it, and what goes before."""
        session = started.session
        files = await self._store.read(app, lambda view: _files(view, started.turn))
        paths = await self._homes.attach(session.session_id, files) if files else []
        prompt = memory.with_files(started.turn.prompt, paths)
        live = place.agent
        if live is not None and live.alive and place.context == session.context:
            return live, prompt, ""
        await self._pool.drop_agent(place)
        live, told = await self._open(place, app, started)
        instructions = session.instructions if live.how == "new" else None
        return live, prompt, memory.preface(instructions, told)

    async def _open(self, place: Place, app: str, started: Started) -> tuple[LiveAgent, str]:
        session, plan = started.session, started.session.context_plan
        spec = self._agents.spec(session.agent)
        home = await self._homes.prepare(session.session_id, spec)
        wanted = session.agent_session_id if plan == memory.LOAD else None
        boundary = memory.restore_turn(plan)
        if boundary is not None:
            wanted = await self._restored(app, session, boundary)
        if session.files_plan is not None:
            await self._put_files_back(app, session, session.files_plan)
        turns = await self._store.read(
            app, lambda view: memory.recent_turns(view, session.session_id, session.last_turn)
        )
        launch = Launch(
            app=app,
            session_id=session.session_id,
            agent=spec,
            cwd=Path(session.cwd),
            home=home,
            model=session.model,
            plan_mode=session.plan_mode,
            agent_session_id=wanted,
            counter=memory.counter(turns),
        )
        known = asyncio.create_task(self._snapshots.begin(session))  # while the agent starts, before it works
        try:
            live = await self._start(place, app, launch)
        finally:
            await known
        if live.how != "new" and not memory.is_intact(live.remembered, turns, session.context, boundary):
            log.warning(
                "the agent lost its memory; it gets the transcript", extra={"session_id": session.session_id}
            )
            await self._pool.drop_agent(place)
            live = await self._start(place, app, replace(launch, agent_session_id=None))
        told = await self._told(app, started, live, turns)
        how = live.how if live.how == "new" or boundary is None else "restored"
        number = session.context + (1 if live.how == "new" and plan == memory.LOAD else 0)
        await self._started(app, started, live, number, "transcript" if told and how == "new" else how)
        place.context = number
        return live, told

    async def _restored(self, app: str, session: SessionRow, boundary: int) -> str | None:
        """Without a copy of that turn the home is emptied: what was taken back must not stay in it."""
        session_id = session.session_id
        wanted = await self._homes.restore(session_id, boundary)
        if wanted is not None or not boundary:
            return wanted
        for source in await self._store.read(app, lambda view: memory.sources(view, session, boundary)):
            wanted = await self._homes.branch(source, session_id, boundary)
            if wanted is not None:
                return wanted
        await self._homes.restore(session_id, 0)
        return None

    async def _put_files_back(self, app: str, session: SessionRow, tree: str) -> None:
        """Finish what an undo of files began before a crash."""
        session_id = session.session_id
        try:
            await self._snapshots.restore(session, tree)
        except (Conflict, Unsupported):
            log.exception("the workspace could not be put back", extra={"session_id": session_id})
        await self._store.write(app, lambda tx: tx.change_session(session_id, files_plan=None))

    async def _told(self, app: str, started: Started, live: LiveAgent, turns: list[TurnRow]) -> str:
        """What the agent has to be told because its own memory does not hold it."""
        session_id, running = started.session.session_id, started.turn.turn_index
        only = None if live.how == "new" else memory.unheard_turns(live.remembered, turns, running)
        if only == set():
            return ""
        messages = await self._store.read(
            app, lambda view: view.last_messages(session_id, TRANSCRIPT_MESSAGES)
        )
        return memory.transcript(messages, running, only)

    async def _start(self, place: Place, app: str, launch: Launch) -> LiveAgent:
        sink = OutsideSink(self._store, self._clock, app, launch.session_id)
        place.agent = await self._agents.driver(launch.agent).open(launch, sink)
        return place.agent

    async def _started(self, app: str, started: Started, live: LiveAgent, number: int, how: str) -> None:
        session_id, now = started.session.session_id, self._clock.now()
        fields = {"number": number, "how": how, "agent": started.session.agent}

        def work(tx: Tx) -> None:
            session = need_session(tx, session_id)
            if session.context != started.session.context:
                raise LeaseLost  # history was changed under a turn that no longer holds
            tx.change_session(
                session_id,
                context=number,
                context_plan=memory.LOAD,
                agent_session_id=live.agent_session_id,
            )
            if number != session.context:
                tx.change_turn(session_id, started.turn.turn_index, context=number)
            tx.append(session_id, [draft(EventType.CONTEXT_STARTED, None, now, fields)], fence=started.fence)

        await self._store.write(app, work)


def _ending(work: asyncio.Task[Answer], stop: Stop, session_id: str) -> Ending:
    """What the turn's end is called. A stop that was asked for wins over what the agent says of it."""
    failed = None if work.cancelled() else work.exception()
    usage: Json | None = None
    if not work.cancelled() and failed is None:
        usage = work.result().usage
    if stop.wanted.is_set():
        error = None if stop.outcome is Outcome.CANCELLED else stop.reason
        code = ErrorCode.TURN_INTERRUPTED if stop.outcome is Outcome.INTERRUPTED else None
        stopped = "cancelled" if stop.outcome is Outcome.CANCELLED else None
        return Ending(outcome=stop.outcome, stop_reason=stopped, error=error, code=code, usage=usage)
    if failed is None:
        reason = work.result().stop_reason
        outcome = Outcome.CANCELLED if reason == "cancelled" else Outcome.COMPLETED
        return Ending(outcome=outcome, stop_reason=reason, usage=usage)
    if isinstance(failed, LeaseLost):
        raise failed
    if not isinstance(failed, ForgeAPIError):
        where = {"session_id": session_id}
        log.error("a turn failed in a way that is not the agent's", exc_info=failed, extra=where)
    known = failed if isinstance(failed, ForgeAPIError) else AgentFailed("the server failed to run this turn")
    extra = {"stop_reason": "error", **known.extra}
    return Ending(
        outcome=Outcome.FAILED, stop_reason="error", error=known.message, code=known.code, error_extra=extra
    )


def _files(view: View, turn: TurnRow) -> list[FileRow]:
    rows = [view.file(token) for token in turn.files]
    found = [row for row in rows if row is not None]
    if len(found) < len(rows):
        raise UnknownFile("a file of this turn was deleted before the turn began; upload it again")
    return found
