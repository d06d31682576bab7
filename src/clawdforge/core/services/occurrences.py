"""Runs one occurrence of a schedule: its prompt, its new session and its history are one transaction."""

from contextlib import AsyncExitStack
from functools import partial

from clawdforge.core.clock import Clock
from clawdforge.core.models.principal import Principal
from clawdforge.core.models.rows import TokenRow
from clawdforge.core.models.schedules import OccurrenceRow, ScheduleRow
from clawdforge.core.ports import Store, Tx
from clawdforge.core.rules.schedules import (
    Plan,
    begin_occurrence,
    check_token,
    name_key,
    note_submitted,
    note_undone,
)
from clawdforge.core.rules.turns import SubmittedTurn
from clawdforge.core.services.sessions import SessionService
from clawdforge.core.services.turns import Beside, TurnService
from clawdforge.wire.errors import ForgeAPIError, ServerBusy, Stopping, StoreUnavailable
from clawdforge.wire.schedules import OccurrenceState
from clawdforge.wire.session import CreateSession
from clawdforge.wire.turn import TurnRequest


class Occurrences:
    def __init__(self, store: Store, clock: Clock, sessions: SessionService, turns: TurnService) -> None:
        self._store = store
        self._clock = clock
        self._sessions = sessions
        self._turns = turns

    async def carry_out(self, row: ScheduleRow, plan: Plan) -> OccurrenceState | None:
        """Do what is planned, and go on to the next time; None if that was done already.

        Whatever refuses the prompt becomes its history. Raises only where nobody knows, or can know: then the
        schedule is as before, and still due.
        """
        refused: ForgeAPIError | None = None
        if plan.runs:
            try:
                return (await self.run(row, plan.occurrence_id, plan)).state
            except (StoreUnavailable, Stopping, ServerBusy):
                raise
            except ForgeAPIError as error:
                refused = error
        at = self._clock.now()
        undone = await self._store.write(
            row.app_name, lambda tx: note_undone(tx, row.schedule_id, plan, refused, at)
        )
        return None if undone is None else undone.state

    async def run(self, row: ScheduleRow, occurrence_id: str, plan: Plan | None) -> OccurrenceRow:
        """Give the prompt to its session. Raises what refuses it, and then nothing is written."""
        now, app = self._clock.now(), row.app_name
        check_token(row, await self._find_tokens(app), now)
        occurrence = OccurrenceRow(
            app_name=app,
            schedule_id=row.schedule_id,
            occurrence_id=occurrence_id,
            planned_at=now if plan is None else plan.planned,
            noted_at=now,
            by_hand=plan is None,
            state=OccurrenceState.SUBMITTED,
            missed=0 if plan is None else plan.missed,
        )
        begin = partial(begin_occurrence, schedule_id=row.schedule_id, occurrence_id=occurrence_id, plan=plan)

        def note(tx: Tx, submitted: SubmittedTurn) -> None:
            note_submitted(tx, occurrence, submitted.turn, plan)

        await self._submit(row, occurrence_id, Beside(begin, note))
        return await self._store.read(app, lambda view: view.occurrence(row.schedule_id, occurrence_id)) or (
            occurrence
        )

    async def _submit(self, row: ScheduleRow, occurrence_id: str, beside: Beside) -> None:
        request, by = TurnRequest(prompt=row.prompt), Principal(app=row.app_name, token_id=row.token_id)
        key = name_key(row, occurrence_id)
        if row.session_id is not None:
            await self._turns.submit(row.app_name, row.session_id, request, key, by, beside)
            return
        async with AsyncExitStack() as stack:
            wanted = CreateSession.model_validate(row.new_session or {})
            new = await stack.enter_async_context(
                self._sessions.prepare(row.app_name, wanted, may_decide=row.may_decide, is_new=False)
            )

            def begin(tx: Tx) -> None:
                beside.before(tx)
                self._sessions.store(tx, new)

            await self._turns.submit_first(new.row, request, key, by, Beside(begin, beside.after))

    async def _find_tokens(self, app: str) -> list[TokenRow]:
        return await self._store.read_system(lambda view: view.tokens(app))
