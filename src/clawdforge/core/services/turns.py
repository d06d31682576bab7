"""Turns: a prompt submitted, waited for, cancelled, taken out of the queue."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from clawdforge.core.clock import Clock
from clawdforge.core.log import PAGE_BYTES, LogService
from clawdforge.core.models.principal import Principal
from clawdforge.core.models.rows import SessionRow, TurnRow
from clawdforge.core.pacing.computing import Computing
from clawdforge.core.pacing.long_reads import read_rows
from clawdforge.core.ports import Store, Tx, View
from clawdforge.core.rules.fingerprints import fingerprint
from clawdforge.core.rules.queue import order_queue
from clawdforge.core.rules.queue_edits import change_queued
from clawdforge.core.rules.quotas import NO_QUOTAS, Quotas
from clawdforge.core.rules.turns import (
    StartedTurn,
    SubmittedTurn,
    need_session,
    start_next,
    submit,
    withdraw,
    withdraw_some,
)
from clawdforge.core.running.answers import Answers
from clawdforge.core.running.elsewhere import Elsewhere
from clawdforge.core.running.supervisor import Supervisor
from clawdforge.core.unbroken import Unbroken
from clawdforge.wire.errors import (
    BY_CODE,
    AgentFailed,
    SessionNotFound,
    StoreUnavailable,
    TurnNotFound,
    TurnNotQueued,
)
from clawdforge.wire.turn import ChangeTurn, IfBusy, Outcome, TurnRequest, TurnState

COPY_SECS = 0.05
"""A prompt waits so long for the copy after the last turn, to start in the commit that records it."""

LONG_PROMPT: Final = 256 * 1024
"""In characters. The digest of a longer one would keep the writer, and so everybody, for milliseconds."""


class Beside(NamedTuple):
    """What else is done in the transaction that records a prompt; whatever either raises undoes all of it."""

    before: Callable[[Tx], None]
    after: Callable[[Tx, SubmittedTurn], None]


class TurnService:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        log: LogService,
        supervisor: Supervisor,
        answers: Answers,
        quotas: Quotas = NO_QUOTAS,
        computing: Computing | None = None,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self._elsewhere = elsewhere
        self._store = store
        self._clock = clock
        self._log = log
        self._supervisor = supervisor
        self._answers = answers
        self._quotas = quotas
        self._computing = computing or Computing()
        self._unbroken = Unbroken()

    async def submit(
        self,
        app: str,
        session_id: str,
        request: TurnRequest,
        key: str | None,
        by: Principal | None = None,
        beside: Beside | None = None,
    ) -> SubmittedTurn:
        """The prompt is on stable storage when this returns. A caller that hangs up changes nothing."""
        return await self._unbroken.run(self._submit(app, session_id, request, key, by, beside))

    async def submit_first(
        self, new: SessionRow, request: TurnRequest, key: str, by: Principal, beside: Beside
    ) -> SubmittedTurn:
        """Submit the first prompt of a session that `beside` stores in the same transaction."""
        await self._supervisor.find_session(new.app_name, new.session_id)  # how many agents its app may have
        return await self._unbroken.run(self._record(new, request, key, by, beside))

    async def _submit(
        self,
        app: str,
        session_id: str,
        request: TurnRequest,
        key: str | None,
        by: Principal | None,
        beside: Beside | None,
    ) -> SubmittedTurn:
        """Whose session it is comes first: nobody waits for, or reserves, what belongs to another app."""
        session = await self._supervisor.find_session(app, session_id)
        if session is None:
            raise SessionNotFound
        await self._supervisor.wait_for_copy(session_id, within=COPY_SECS)
        return await self._record(session, request, key, by, beside)

    async def _record(
        self,
        session: SessionRow,
        request: TurnRequest,
        key: str | None,
        by: Principal | None,
        beside: Beside | None,
    ) -> SubmittedTurn:
        """An idle session starts its turn in the commit that records the prompt."""
        app, session_id = session.app_name, session.session_id
        digest = await self._weigh(app, request)
        write = self._store.write if digest is None else self._store.write_slice  # nobody waits for that
        is_lacking = self._elsewhere is not None and await self._elsewhere.is_lacking(session)
        seat = None if is_lacking else self._supervisor.reserve(app, session_id, session.parent_session_id)
        node, now, started = self._supervisor.node, self._clock.now(), None

        def work(tx: Tx) -> tuple[SubmittedTurn, StartedTurn | None]:
            if beside is not None:
                beside.before(tx)
            submitted = submit(tx, session_id, request, key, now, by, self._quotas, digest)
            if beside is not None:
                beside.after(tx, submitted)
            if seat is None or submitted.replayed:
                return submitted, None
            only = submitted.turn if submitted.is_alone and beside is None else None
            begun = start_next(tx, session_id, node, now, only)
            if begun is not None and only is not None:
                begun = replace(begun, room=submitted.room)
            return submitted, begun

        lost = False
        try:
            submitted, started = await write(app, work)
        except StoreUnavailable:
            lost = True  # it may be on disk all the same, perhaps started, with nobody to run it
            raise
        finally:
            if seat is not None and started is None:
                self._supervisor.release(seat)
            if lost:
                self._supervisor.wake(app, session_id, start_in_doubt=seat is not None)
        if seat is not None and started is not None:
            self._supervisor.begin(seat, started)
        else:
            self._supervisor.wake(app, session_id)
        await self._make_way(app, session_id, submitted)
        return submitted

    async def _weigh(self, app: str, request: TurnRequest) -> str | None:
        """The digest of a long prompt. That of a short one is computed where it is written."""
        if len(request.prompt) <= LONG_PROMPT:
            return None
        return await self._computing.run(app, partial(fingerprint, request))

    async def _make_way(self, app: str, session_id: str, submitted: SubmittedTurn) -> None:
        policy = submitted.turn.if_busy
        if submitted.active is not None and policy in (IfBusy.INTERRUPT, IfBusy.ROLLBACK):
            rollback = policy is IfBusy.ROLLBACK
            await self._supervisor.cancel(app, session_id, submitted.active, rollback=rollback)

    async def wait(
        self, app: str, session_id: str, turn_index: int, ended: asyncio.Event | None = None
    ) -> TurnRow:
        """The turn once it has ended, without its prompt. Whoever stops waiting does not stop the turn.

        A turn has a time limit and a queue before it, so there is none here. With `ended`, which was the next
        end in this session before the turn was submitted, nothing is looked up until there was one.
        """

        def look(view: View) -> TurnRow:
            return _need(view, session_id, view.turn_outline(session_id, turn_index))

        with self._log.tail(session_id) as tail:
            while True:
                if ended is not None:
                    await ended.wait()
                    runs_here = self._supervisor.runs(session_id, turn_index)
                    found = await self._answers.find_end(session_id, turn_index, runs_here=runs_here)
                    if found is not None:
                        return found
                ended = tail.turn_ended
                turn = await self._store.read(app, look)
                if turn.state is TurnState.ENDED:
                    return turn

    def expect_answer(self, session_id: str, turn_index: int) -> AbstractContextManager[None]:
        """To be left when the answer is on its way: what is done after the turn waits a moment for that."""
        return self._answers.expect(session_id, turn_index)

    async def get(self, app: str, session_id: str, turn_index: int) -> TurnRow:
        return await self._store.read(
            app, lambda view: _need(view, session_id, view.turn(session_id, turn_index))
        )

    async def list(
        self, app: str, session_id: str, after: int, limit: int
    ) -> tuple[list[TurnRow], bool, dict[int, int]]:
        """A page of turns, whether there are more, and the places of those that wait."""

        def work(view: View) -> tuple[list[TurnRow], bool, dict[int, int]]:
            session = need_session(view, session_id)
            rows, is_more = view.turn_page(session_id, after=after, limit=limit, max_bytes=PAGE_BYTES)
            if not any(row.state is TurnState.QUEUED for row in rows):
                return rows, is_more, {}
            order = order_queue(view, session)
            return rows, is_more, {index: place for place, index in enumerate(order)}

        def count(view: View) -> int:
            return need_session(view, session_id).last_turn

        return await read_rows(self._store, app, limit, work, count)

    async def cancel(self, app: str, session_id: str, *, queued: bool = False) -> int:
        """End the running turn and keep what was said; with `queued`, empty the queue first."""
        now = self._clock.now()
        await self._store.read(app, lambda view: need_session(view, session_id))
        taken = 0
        while queued and (
            some := await self._store.write(app, lambda tx: withdraw_some(tx, session_id, now))
        ):
            taken += some
        return taken + int(await self._supervisor.cancel(app, session_id))

    async def stop(self, app: str, session_id: str, turn_index: int) -> bool:
        """End this one turn, running or queued; False when it has ended already."""
        turn = await self.get(app, session_id, turn_index)
        if turn.state is TurnState.QUEUED:
            with suppress(TurnNotQueued):
                await self.withdraw(app, session_id, turn_index)
                return True
        return await self._supervisor.cancel(app, session_id, turn_index)

    async def change(
        self, by: Principal, session_id: str, turn_index: int, request: ChangeTurn
    ) -> tuple[TurnRow, int]:
        """Change a turn that waits; the turn and its place in the queue."""
        now = self._clock.now()
        return await self._store.write(
            by.app, lambda tx: change_queued(tx, session_id, turn_index, request, now, self._quotas, by)
        )

    async def withdraw(self, app: str, session_id: str, turn_index: int) -> TurnRow:
        now = self._clock.now()
        return await self._store.write(app, lambda tx: withdraw(tx, session_id, turn_index, now))


def raise_for(turn: TurnRow) -> None:
    """A turn that failed, as the error that a waiting caller gets."""
    if turn.outcome in (Outcome.COMPLETED, Outcome.CANCELLED, None):
        return
    duration = max(0, turn.ended_at - turn.started_at) // 1000 if turn.ended_at and turn.started_at else 0
    extra = {**turn.error_extra, "turn_index": turn.turn_index, "duration_ms": duration}
    raise BY_CODE.get(turn.code or "", AgentFailed)(turn.error, **extra)


def _need(view: View, session_id: str, turn: TurnRow | None) -> TurnRow:
    if turn is None:
        need_session(view, session_id)
        raise TurnNotFound
    return turn
