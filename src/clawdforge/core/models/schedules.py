"""The records of schedules: what is to be prompted when, and what became of each time."""

from dataclasses import dataclass

from clawdforge.wire.base import Json, Micros
from clawdforge.wire.schedules import Missed, OccurrenceState, Overlap, ScheduleState


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRow:
    """`next_at` is the time that comes next, or that is due; None while it is paused, and at its end."""

    app_name: str
    schedule_id: str
    title: str = ""
    prompt: str
    cron: str | None = None
    at: Micros | None = None
    timezone: str
    session_id: str | None = None
    new_session: Json | None = None  # a CreateSession; for schedules without a session of their own
    overlap: Overlap
    missed: Missed
    state: ScheduleState = ScheduleState.ON
    reason: str | None = None
    next_at: Micros | None = None
    token_id: str | None = None  # whose budgets it spends; once that is revoked, nothing runs
    may_decide: bool = False  # whether whoever made it may have approved in advance what agents ask for
    last_session: str | None = None
    last_turn: int | None = None
    created_at: Micros


@dataclass(frozen=True, slots=True, kw_only=True)
class OccurrenceRow:
    """One time of a schedule. Its id is that time, so that there cannot be two of it."""

    app_name: str
    schedule_id: str
    occurrence_id: str
    planned_at: Micros
    noted_at: Micros
    by_hand: bool = False
    state: OccurrenceState
    missed: int = 0
    session_id: str | None = None
    turn_index: int | None = None
    error: str | None = None
    code: str | None = None
