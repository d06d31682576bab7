"""Attends one turn from start to end: the prompt, a stop, a time-out, a failing agent or store."""

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass

from clawdforge.core.clock import Clock
from clawdforge.core.models.agents import Answer
from clawdforge.core.pacing.loop_turns import LoopTurns
from clawdforge.core.ports import LeaseLost, LiveAgent, Store
from clawdforge.core.rules.limits import STOP_REASON
from clawdforge.core.rules.quotas import NO_QUOTAS, Quotas
from clawdforge.core.rules.traces import find_traceparent
from clawdforge.core.rules.turns import Ending, StartedTurn
from clawdforge.core.running.bell import Bell
from clawdforge.core.running.elsewhere import Elsewhere
from clawdforge.core.running.late_calls import LateCalls
from clawdforge.core.running.membership import CUT_OFF
from clawdforge.core.running.opening import Opener, ReadyAgent
from clawdforge.core.running.permissions import PermissionService
from clawdforge.core.running.pool import CLOSE_SECS, AgentPool, Seat
from clawdforge.core.running.progress import Progress
from clawdforge.core.running.recorder import TurnRecorder
from clawdforge.core.running.retries import Retries
from clawdforge.core.running.running_turn import RunningTurn
from clawdforge.core.running.stops import LimitWatch, Stop
from clawdforge.core.running.worker import Attended
from clawdforge.wire.admin import WaitsFor
from clawdforge.wire.error_codes import ErrorCode
from clawdforge.wire.errors import (
    AgentError,
    AgentFailed,
    AgentLost,
    BudgetExceeded,
    ForgeAPIError,
    StoreUnavailable,
    TurnInterrupted,
)
from clawdforge.wire.turn import Outcome

log = logging.getLogger(__name__)
BREAK_OFF_SECS = 0.5
STORE_RETRY_SECS = 0.5


@dataclass(frozen=True, slots=True)
class Times:
    """How long things may take, in seconds."""

    turn: float
    cancel_grace: float
    store_patience: float = 30.0
    retries: int = 0  # of a prompt that nobody has begun to answer


class Attendant:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        opener: Opener,
        pool: AgentPool,
        permissions: PermissionService,
        elsewhere: Elsewhere,
        turns_on_loop: LoopTurns,
        times: Times,
        quotas: Quotas = NO_QUOTAS,
        *,
        is_traced: bool = False,
    ) -> None:
        self._is_traced = is_traced
        self._store = store
        self._clock = clock
        self._opener = opener
        self._pool = pool
        self._permissions = permissions
        self._elsewhere = elsewhere
        self._turns_on_loop = turns_on_loop
        self._times = times
        self._quotas = quotas
        self._late_calls = LateCalls()

    async def attend(self, seat: Seat, started: StartedTurn, stop: Stop, progress: Progress) -> Attended:
        """Returns when the turn has ended and that is on stable storage.

        If this node has given up while the start was being written, nobody knew of the turn to stop it.
        """
        if self._elsewhere.has_given_up:
            stop.request(Outcome.INTERRUPTED, CUT_OFF)
            stop.hurried.set()
        watch = LimitWatch(started.turn.limits, stop)
        recorder = TurnRecorder(
            self._store,
            self._clock,
            self._permissions,
            seat.app,
            started,
            progress,
            watch,
            self._quotas,
        )
        turn = RunningTurn(started, seat, stop, watch, recorder, progress)
        bell = stop.bell = Bell(self._late_calls)
        recorder.start_writing(self._times.store_patience, bell)
        try:
            await recorder.note_room()
            ending = await self._run_until_end(turn, bell)
        except LeaseLost:
            recorder.stop_writing()
            raise
        except Exception:  # whatever failed, a turn that was started has an end
            log.exception("a turn could not be seen through", extra={"session_id": turn.session_id})
            ending = _ending_of_failure(AgentFailed("the server failed to run this turn"))
        progress.wait_for(WaitsFor.STORE)
        session = seat.arrived or started.session
        is_empty = await self._elsewhere.is_first_and_empty(session, turn.index)
        try:
            ended = await recorder.end(ending, rollback=stop.rollback, is_empty=is_empty)
        except LeaseLost:
            raise
        except Exception:  # as above: without its answer, if that is what cannot be written
            log.exception("the end of a turn could not be written", extra={"session_id": turn.session_id})
            lost = AgentFailed("the server could not record the end of this turn; its events are kept")
            return Attended(await recorder.end_without_answer(_ending_of_failure(lost)))
        return Attended(ended, recorder.is_last)

    async def _run_until_end(self, turn: RunningTurn, bell: Bell) -> Ending:
        """Let the agent answer until it is done, a stop is requested, the time is up, or the store fails."""
        if turn.stop.requested.is_set():  # before there was a bell
            bell.ring()
        work = asyncio.create_task(self._prompt_and_ring(turn, bell))
        seconds, own = turn.started.turn.timeout_secs or self._times.turn, turn.watch.seconds
        by_limit = own is not None and own <= seconds
        has_rung = await bell.listen(own if own is not None and by_limit else seconds)
        if work.done():
            self._elsewhere.notice_stop()
            return _judge(work, turn)
        failure = turn.recorder.failure
        if failure is not None:
            await break_off(self._pool, turn.seat, work)
            if isinstance(failure, LeaseLost):
                raise LeaseLost
            return Ending(
                outcome=Outcome.INTERRUPTED,
                error="the store could not be written for too long; what was said until then is kept",
                code=ErrorCode.TURN_INTERRUPTED,
            )
        if has_rung and not turn.stop.requested.is_set():
            await break_off(self._pool, turn.seat, work)
            raise RuntimeError("a turn was woken, and nothing tells why")
        if own is not None and by_limit:
            turn.watch.end_time(own)
        timed_out = not turn.stop.requested.is_set()
        await self._stop_agent(turn, work)
        if timed_out:
            answered = not work.cancelled() and work.exception() is None
            return Ending(
                usage=work.result().usage if answered else None,
                outcome=Outcome.TIMED_OUT,
                error=f"the turn took longer than {seconds:g} s and was ended; the session stays usable",
                code=ErrorCode.TURN_TIMED_OUT,
            )
        return _judge(work, turn)

    async def _prompt_and_ring(self, turn: RunningTurn, bell: Bell) -> Answer:
        try:
            return await self._prompt_agent(turn)
        finally:
            bell.ring()  # whoever listens runs after this task has ended

    async def _prompt_agent(self, turn: RunningTurn) -> Answer:
        question = turn.started.question
        if question is not None and not await turn.recorder.ask_whether_to_run(question):
            turn.watch.end_budget(f"a budget is used up, and nobody allowed this: {question.name}")
            raise BudgetExceeded
        retries, again = Retries(self._times.retries), False
        while True:
            try:
                return await self._prompt_once(turn, again=again)
            except AgentError as failure:
                self._elsewhere.notice_stop()
                wait = retries.find_wait(failure)
                if wait is None:
                    raise
                turn.recorder.note_retry(failure, wait)
                again = not isinstance(failure, AgentLost)
            turn.progress.wait_for(WaitsFor.AGENT)
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await turn.stop.requested.wait()
            if turn.stop.requested.is_set():
                raise TurnInterrupted  # before another agent is started for it
            turn = await self._opener.look_again(turn)

    async def _prompt_once(self, turn: RunningTurn, *, again: bool) -> Answer:
        """`again` says that an agent was given the prompt before, and was refused an answer to it."""
        await self._turns_on_loop.go_on(turn.app)  # a crowd of turns is charged with more than its requests
        if turn.stop.requested.is_set():
            raise TurnInterrupted  # before anything is done for it
        turn, ready = await self._make_ready(turn, again=again)
        turn.progress.wait_for(WaitsFor.AGENT)
        if turn.stop.requested.is_set():
            raise TurnInterrupted  # the stop says how it ends; the agent has not heard of it
        turn.recorder.note_prompt()
        try:
            trace = find_traceparent(turn.started.turn) if self._is_traced else None
            answer = await ready.agent.prompt(
                ready.prompt, turn.recorder, preface=ready.preface, traceparent=trace
            )
        except AgentError as failure:
            if failure.extra.get("heard") is not False:
                turn.seat.untold = ""
            raise
        else:
            turn.seat.untold = ""
            return answer
        finally:
            if not ready.agent.alive:
                await self._pool.drop_agent(turn.seat)

    async def _make_ready(self, turn: RunningTurn, *, again: bool) -> tuple[RunningTurn, ReadyAgent]:
        """While the store is away it is tried again, as long as words of an agent would wait for it."""
        loop = asyncio.get_running_loop()
        late = loop.time() + self._times.store_patience
        while True:
            try:
                if turn.seat.agent is None:
                    await self._elsewhere.need_all(turn.session)
                return turn, await self._opener.make_ready(turn, again=again)
            except StoreUnavailable:
                if loop.time() >= late:
                    raise
            await asyncio.sleep(STORE_RETRY_SECS)
            with suppress(StoreUnavailable):
                turn = await self._opener.look_again(turn)

    async def _stop_agent(self, turn: RunningTurn, work: asyncio.Task[Answer]) -> None:
        """Ask the agent, wait a little, then end it."""
        agent = turn.seat.agent
        if agent is not None and agent.alive:
            await self._ask_to_stop(agent, turn, work)
        await break_off(self._pool, turn.seat, work)

    async def _ask_to_stop(self, agent: LiveAgent, turn: RunningTurn, work: asyncio.Task[Answer]) -> None:
        """Give the agent time to end the turn by itself; less where the server stops."""

        async def ask() -> None:
            await agent.cancel()
            await asyncio.wait({work})

        asking = asyncio.create_task(ask())
        hurried = asyncio.create_task(turn.stop.hurried.wait())
        try:
            await asyncio.wait(
                {asking, hurried}, timeout=self._times.cancel_grace, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            asking.cancel()  # one that does not read cannot even be asked
            hurried.cancel()
        if asking.done() and (failure := asking.exception()) is not None:
            log.warning(
                "an agent could not be asked to stop: %s", failure, extra={"session_id": turn.session_id}
            )


async def break_off(pool: AgentPool, seat: Seat, work: asyncio.Task[Answer]) -> None:
    """End the agent and whatever waits for it.

    A cancel may get lost while an agent is starting, so it is repeated until the work has ended.
    """
    while not work.done():
        work.cancel()
        try:
            async with asyncio.timeout(CLOSE_SECS):
                await pool.drop_agent(seat)
        except OSError:  # a TimeoutError is one: the agent does not end
            log.exception("the agent of a turn could not be ended", extra={"session_id": seat.session_id})
        await asyncio.wait({work}, timeout=BREAK_OFF_SECS)
    if not work.cancelled():
        work.exception()  # marks it as seen: whoever breaks off knows why


def _judge(work: asyncio.Task[Answer], turn: RunningTurn) -> Ending:
    """How the turn ended. A requested stop wins over what the agent says about it."""
    failure = None if work.cancelled() else work.exception()
    answer = None if work.cancelled() or failure is not None else work.result()
    if answer is not None:
        turn.watch.judge(answer.usage)
    if turn.stop.requested.is_set():
        return _ending_of_stop(turn.stop, answer)
    if answer is not None:
        outcome = Outcome.CANCELLED if answer.stop_reason == "cancelled" else Outcome.COMPLETED
        return Ending(outcome=outcome, stop_reason=answer.stop_reason, usage=answer.usage)
    if isinstance(failure, LeaseLost):
        raise failure
    if isinstance(failure, ForgeAPIError):
        return _ending_of_failure(failure)
    log.error(
        "a turn failed because of the server, not the agent",
        exc_info=failure,
        extra={"session_id": turn.session_id},
    )
    return _ending_of_failure(AgentFailed("the server failed to run this turn"))


def _ending_of_stop(stop: Stop, answer: Answer | None) -> Ending:
    usage = None if answer is None else answer.usage
    if stop.limit is not None:
        return Ending(
            outcome=stop.outcome,
            stop_reason=STOP_REASON,
            error=stop.reason,
            stopped_by=stop.limit,
            usage=usage,
        )
    if stop.outcome is Outcome.CANCELLED:
        return Ending(outcome=stop.outcome, stop_reason="cancelled", usage=usage)
    code = ErrorCode.TURN_INTERRUPTED if stop.outcome is Outcome.INTERRUPTED else None
    return Ending(outcome=stop.outcome, error=stop.reason, code=code, usage=usage)


def _ending_of_failure(error: ForgeAPIError) -> Ending:
    passing = {} if error.retry_after is None else {"retry_after": error.retry_after}
    return Ending(
        outcome=Outcome.FAILED,
        stop_reason="error",
        error=error.message,
        code=error.code,
        error_extra={"stop_reason": "error", **error.extra, **passing},
    )
