"""Attends one turn from start to end: the prompt, a stop, a time-out, a failing agent or store."""

import asyncio
import logging
from dataclasses import dataclass

from clawdforge.core.model import Answer, Clock, TurnRow
from clawdforge.core.ports import LeaseLost, Store
from clawdforge.core.rules.turns import Ending, Started
from clawdforge.core.running.opening import Opener
from clawdforge.core.running.permissions import PermissionService
from clawdforge.core.running.pool import CLOSE_SECS, AgentPool, Seat
from clawdforge.core.running.recorder import TurnRecorder
from clawdforge.core.running.running_turn import RunningTurn, Stop
from clawdforge.wire.error_codes import ErrorCode
from clawdforge.wire.errors import AgentFailed, ForgeAPIError
from clawdforge.wire.turn import Outcome

log = logging.getLogger(__name__)
BREAK_OFF_SECS = 0.5


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
        opener: Opener,
        pool: AgentPool,
        permissions: PermissionService,
        times: Times,
    ) -> None:
        self._store = store
        self._clock = clock
        self._opener = opener
        self._pool = pool
        self._permissions = permissions
        self._times = times

    async def attend(self, seat: Seat, started: Started, stop: Stop) -> TurnRow:
        """Returns when the turn has ended and that is on stable storage."""
        recorder = TurnRecorder(self._store, self._clock, self._permissions, seat.app, started)
        turn = RunningTurn(started, seat, stop, recorder)
        writing = recorder.start_writing(self._times.store_patience)
        try:
            ending = await self._see_through(turn, writing)
        except LeaseLost:
            writing.cancel()
            raise
        except Exception:  # whatever failed, a turn that was started has an end
            log.exception("a turn could not be seen through", extra={"session_id": turn.session_id})
            ending = _failed(AgentFailed("the server failed to run this turn"))
        return await recorder.end(ending, rollback=stop.rollback)

    async def _see_through(self, turn: RunningTurn, writing: asyncio.Task[None]) -> Ending:
        """Let the agent answer until it has, until somebody or the time wants an end, or the store fails."""
        work = asyncio.create_task(self._converse(turn))
        asked = asyncio.create_task(turn.stop.asked.wait())
        seconds = turn.started.turn.timeout_secs or self._times.turn
        try:
            await asyncio.wait({work, asked, writing}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            asked.cancel()
        if work.done():
            return _judge(work, turn)
        if writing.done():
            await break_off(self._pool, turn.seat, work)
            if isinstance(writing.exception(), LeaseLost):
                raise LeaseLost
            return Ending(
                outcome=Outcome.INTERRUPTED,
                error="the store could not be written for too long; what was said until then is kept",
                code=ErrorCode.TURN_INTERRUPTED,
            )
        timed_out = not turn.stop.asked.is_set()
        await self._make_stop(turn.seat, work)
        if timed_out:
            return Ending(
                outcome=Outcome.TIMED_OUT,
                error=f"the turn took longer than {seconds:g} s and was ended; the session stays usable",
                code=ErrorCode.TURN_TIMED_OUT,
            )
        return _judge(work, turn)

    async def _converse(self, turn: RunningTurn) -> Answer:
        ready = await self._opener.make_ready(turn)
        try:
            return await ready.agent.prompt(ready.prompt, turn.recorder, preface=ready.preface)
        finally:
            if not ready.agent.alive:
                await self._pool.drop_agent(turn.seat)

    async def _make_stop(self, seat: Seat, work: asyncio.Task[Answer]) -> None:
        """Ask the agent, wait a little, then end it."""
        if seat.agent is not None and seat.agent.alive:
            await seat.agent.cancel()
            await asyncio.wait({work}, timeout=self._times.cancel_grace)
        await break_off(self._pool, seat, work)


async def break_off(pool: AgentPool, seat: Seat, work: asyncio.Task[Answer]) -> None:
    """End the agent and whatever waits for it.

    A cancel may be lost where an agent is just coming up: then there is one to end after all.
    """
    while not work.done():
        work.cancel()
        try:
            async with asyncio.timeout(CLOSE_SECS):
                await pool.drop_agent(seat)
        except OSError:  # a TimeoutError is one: the agent does not end
            log.exception("the agent of a turn could not be ended", extra={"session_id": seat.session_id})
        await asyncio.wait({work}, timeout=BREAK_OFF_SECS)


def _judge(work: asyncio.Task[Answer], turn: RunningTurn) -> Ending:
    """What the turn's end is called. A stop that was asked for wins over what the agent says of it."""
    failure = None if work.cancelled() else work.exception()
    answer = None if work.cancelled() or failure is not None else work.result()
    if turn.stop.asked.is_set():
        return _stopped(turn.stop, answer)
    if answer is not None:
        outcome = Outcome.CANCELLED if answer.stop_reason == "cancelled" else Outcome.COMPLETED
        return Ending(outcome=outcome, stop_reason=answer.stop_reason, usage=answer.usage)
    if isinstance(failure, LeaseLost):
        raise failure
    if isinstance(failure, ForgeAPIError):
        return _failed(failure)
    log.error(
        "a turn failed in a way that is not the agent's",
        exc_info=failure,
        extra={"session_id": turn.session_id},
    )
    return _failed(AgentFailed("the server failed to run this turn"))


def _stopped(stop: Stop, answer: Answer | None) -> Ending:
    usage = None if answer is None else answer.usage
    if stop.outcome is Outcome.CANCELLED:
        return Ending(outcome=stop.outcome, stop_reason="cancelled", usage=usage)
    code = ErrorCode.TURN_INTERRUPTED if stop.outcome is Outcome.INTERRUPTED else None
    return Ending(outcome=stop.outcome, error=stop.reason, code=code, usage=usage)


def _failed(error: ForgeAPIError) -> Ending:
    return Ending(
        outcome=Outcome.FAILED,
        stop_reason="error",
        error=error.message,
        code=error.code,
        error_extra={"stop_reason": "error", **error.extra},
    )
