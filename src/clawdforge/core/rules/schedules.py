"""What schedules do at their times, as plain functions over a transaction.

An occurrence is one time of a schedule. What becomes of it, the turn that it makes and the time that comes
next are one transaction: a crash leaves all of it or nothing, and then it is done at the next start. Its id
is its time, so a clock that was set back finds what was done already.
"""

from dataclasses import dataclass, replace
from typing import Final

from clawdforge.core.clock import SECOND
from clawdforge.core.models.rows import TokenRow, TurnRow
from clawdforge.core.models.schedules import OccurrenceRow, ScheduleRow
from clawdforge.core.ports import Tx, View
from clawdforge.core.rules.times import count_times, find_latest, find_next
from clawdforge.wire.base import Micros, to_iso_seconds
from clawdforge.wire.errors import (
    Conflict,
    Forbidden,
    ForgeAPIError,
    ScheduleNotFound,
    SessionBusy,
    SessionNotFound,
)
from clawdforge.wire.schedules import Missed, OccurrenceState, ScheduleState
from clawdforge.wire.turn import TurnState

MOST_SCHEDULES: Final = 200
"""Of one app."""
KEPT: Final = 1000
"""So many occurrences of a schedule are kept."""
IN_TIME: Final = 60 * SECOND
"""What is late by more was missed: the server was away, the app was paused, or somebody has set the clock."""
MAX_ERROR: Final = 500
RUN: Final = "it has run"
DELETED: Final = "its session was deleted"
NO_MORE: Final = "it has no more times"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done about a schedule that is due: the latest of its times, and how many came before."""

    due: Micros  # what the row said when this was planned
    planned: Micros
    missed: int
    runs: bool
    next_at: Micros | None

    @property
    def occurrence_id(self) -> str:
        return name_time(self.planned)


def name_time(at: Micros) -> str:
    return to_iso_seconds(at) or ""


def name_key(row: ScheduleRow, occurrence_id: str) -> str:
    """The idempotency key of the turn that an occurrence makes."""
    return f"schedule/{row.schedule_id}/{occurrence_id}"


def make_plan(row: ScheduleRow, now: Micros) -> Plan | None:
    """None for what is not due. Of several times that have passed, the latest one counts."""
    due = row.next_at
    if row.state is not ScheduleState.ON or due is None or due > now:
        return None
    planned, missed, next_at = due, 0, None
    if row.cron is not None:
        planned = find_latest(row.cron, row.timezone, due, now)
        missed = count_times(row.cron, row.timezone, due, planned)
        next_at = find_next(row.cron, row.timezone, now)
    runs = now - planned <= IN_TIME or row.missed is Missed.RUN_ONCE
    return Plan(due, planned, missed, runs, next_at)


def find_first(row: ScheduleRow, now: Micros) -> Micros | None:
    """The time from which a schedule goes on that was made, changed or resumed now."""
    if row.cron is not None:
        return find_next(row.cron, row.timezone, now)
    return row.at


def need_schedule(view: View, schedule_id: str) -> ScheduleRow:
    row = view.schedule(schedule_id)
    if row is None:
        raise ScheduleNotFound
    return row


def check_token(row: ScheduleRow, tokens: list[TokenRow], now: Micros) -> None:
    """A token that is revoked or over leaves nothing behind that acts for it."""
    if row.token_id is None:
        return
    mine = next((one for one in tokens if one.token_id == row.token_id), None)
    if mine is None or mine.revoked_at is not None or (mine.expires_at or now + 1) <= now:
        raise Forbidden(
            "the token that this schedule was made with is no longer good; take it over with yours:"
            f" `clawdforge schedules resume {row.schedule_id}`"
        )


def check_overlap(view: View, row: ScheduleRow) -> None:
    """Raise SessionBusy while the last turn of a schedule has not ended, if it is to skip then."""
    if row.overlap is not row.overlap.SKIP or row.last_session is None or row.last_turn is None:
        return
    turn = view.turn(row.last_session, row.last_turn)
    if turn is not None and turn.state is not TurnState.ENDED:
        raise SessionBusy(
            f"the last turn that this schedule made has not ended: {row.last_turn} of {row.last_session}",
            active_turn=row.last_turn,
        )


def begin_occurrence(tx: Tx, schedule_id: str, occurrence_id: str, plan: Plan | None) -> None:
    """Raise where the occurrence is not to be run, as nothing is then written of it. Without a plan it is run
    by hand, whether the schedule is on or not."""
    row = need_schedule(tx, schedule_id)
    if plan is not None and not is_planned(row, plan):
        raise Conflict("this occurrence was dealt with already")
    if tx.occurrence(schedule_id, occurrence_id) is not None:
        raise Conflict("this occurrence was dealt with already")
    check_overlap(tx, row)


def is_planned(row: ScheduleRow, plan: Plan) -> bool:
    """Whether the schedule is still as it was when this was planned."""
    return row.state is ScheduleState.ON and row.next_at == plan.due


def note_submitted(tx: Tx, occurrence: OccurrenceRow, turn: TurnRow, plan: Plan | None) -> None:
    """In the transaction that records the prompt."""
    tx.add_occurrence(replace(occurrence, session_id=turn.session_id, turn_index=turn.turn_index))
    last = {"last_session": turn.session_id, "last_turn": turn.turn_index}
    tx.change_schedule(occurrence.schedule_id, **last)
    tx.trim_occurrences(occurrence.schedule_id, KEPT)
    if plan is not None:
        move_on(tx, occurrence.schedule_id, plan.next_at, RUN)


def note_undone(
    tx: Tx, schedule_id: str, plan: Plan, error: ForgeAPIError | None, at: Micros
) -> OccurrenceRow | None:
    """Record that an occurrence has made no turn, and go on to the next; None if it was dealt with already.

    Without an error it was missed.
    """
    row = tx.schedule(schedule_id)
    if row is None or not is_planned(row, plan):
        return None
    occurrence = None
    if tx.occurrence(schedule_id, plan.occurrence_id) is None:
        occurrence = OccurrenceRow(
            app_name=tx.app,
            schedule_id=schedule_id,
            occurrence_id=plan.occurrence_id,
            planned_at=plan.planned,
            noted_at=at,
            state=_find_state(error),
            missed=plan.missed,
            session_id=row.session_id,
            error=None if error is None else error.message[:MAX_ERROR],
            code=None if error is None else error.code,
        )
        tx.add_occurrence(occurrence)
        tx.trim_occurrences(schedule_id, KEPT)
    if isinstance(error, SessionNotFound) and row.session_id is not None:
        end(tx, schedule_id, DELETED)
    else:
        over = NO_MORE if occurrence is None else f"its time was {occurrence.state}"
        move_on(tx, schedule_id, plan.next_at, over)
    return occurrence


def move_on(tx: Tx, schedule_id: str, next_at: Micros | None, over: str) -> None:
    """Wait for the next time; where there is none, `over` says what it has ended with."""
    if next_at is None:
        end(tx, schedule_id, over)
    else:
        tx.change_schedule(schedule_id, next_at=next_at)


def end(tx: Tx, schedule_id: str, why: str) -> None:
    tx.change_schedule(schedule_id, state=ScheduleState.ENDED, reason=why, next_at=None)


def reckon(tx: Tx, schedule_id: str, next_at: Micros, earlier: Micros) -> None:
    """The clock was set back: what had come next is far off now, and there are times before it."""
    row = tx.schedule(schedule_id)
    if row is not None and row.state is ScheduleState.ON and row.next_at == next_at:
        tx.change_schedule(schedule_id, next_at=earlier)


def _find_state(error: ForgeAPIError | None) -> OccurrenceState:
    if error is None:
        return OccurrenceState.MISSED
    return OccurrenceState.SKIPPED if isinstance(error, SessionBusy) else OccurrenceState.REFUSED
