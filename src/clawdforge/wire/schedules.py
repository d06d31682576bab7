"""Schedules: prompts that the server submits by itself, by cron or once, and what became of each time."""

from enum import StrEnum
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import StringConstraints, model_validator

from clawdforge.wire.base import Json, Reply, StrictRequest
from clawdforge.wire.session import CreateSession, Name, Title

MAX_PROMPT: Final = 100_000
MAX_CRON: Final = 200
MAX_WORD: Final = 64


class Overlap(StrEnum):
    """What happens to an occurrence while the schedule's last turn has not ended."""

    SKIP = "skip"
    QUEUE = "queue"


class Missed(StrEnum):
    """What happens when the time has passed while the server was away, or the app was paused."""

    SKIP = "skip"
    RUN_ONCE = "run_once"


class ScheduleState(StrEnum):
    ON = "on"
    PAUSED = "paused"
    ENDED = "ended"  # there is no next time; its history stays


class OccurrenceState(StrEnum):
    """What became of one time of a schedule."""

    SUBMITTED = "submitted"  # as a turn, which tells how it went
    SKIPPED = "skipped"  # because the last turn had not ended
    MISSED = "missed"  # it was too late, and the schedule says to skip it then
    REFUSED = "refused"  # a budget, a limit, a closed session …: `error` says which


OverlapWord: TypeAlias = Overlap | Literal["skip", "queue"]
MissedWord: TypeAlias = Missed | Literal["skip", "run_once"]

Text = Annotated[str, StringConstraints(min_length=1, max_length=MAX_PROMPT)]
Cron = Annotated[str, StringConstraints(min_length=1, max_length=MAX_CRON)]
Word = Annotated[str, StringConstraints(min_length=1, max_length=MAX_WORD)]


class CreateSchedule(StrictRequest):
    """Body of `POST /schedules`: `cron` with five fields, or `at`, a time such as `2026-12-01T09:00`.

    Both are of the `timezone`; a time may also have an offset of its own. The prompt goes into the session
    `session_id`, or each time into a new one that is made from `session`.
    """

    prompt: Text
    cron: Cron | None = None
    at: Word | None = None
    timezone: Word = "UTC"
    session_id: Name | None = None
    session: CreateSession | None = None
    title: Title = ""
    overlap: Overlap = Overlap.SKIP
    missed: Missed = Missed.RUN_ONCE

    @model_validator(mode="after")
    def _is_one_kind(self) -> Self:
        if (self.cron is None) == (self.at is None):
            raise ValueError("give either cron or at")
        if self.session_id is not None and self.session is not None:
            raise ValueError("give either session_id, or session for a new one each time")
        return self


class ChangeSchedule(StrictRequest):
    """Body of `PATCH /schedules/{id}`: what is left out stays. `paused` pauses and resumes it.

    Whoever changes it has it run with their own token from then on.
    """

    prompt: Text | None = None
    cron: Cron | None = None
    at: Word | None = None
    timezone: Word | None = None
    title: Title | None = None
    overlap: Overlap | None = None
    missed: Missed | None = None
    paused: bool | None = None

    @model_validator(mode="after")
    def _is_one_kind(self) -> Self:
        if self.cron is not None and self.at is not None:
            raise ValueError("give either cron or at")
        return self


class PreviewSchedule(StrictRequest):
    """Body of `POST /schedules/preview`: `cron` or `at`, and `timezone`, as a schedule has them."""

    cron: Cron | None = None
    at: Word | None = None
    timezone: Word = "UTC"

    @model_validator(mode="after")
    def _is_one_kind(self) -> Self:
        if (self.cron is None) == (self.at is None):
            raise ValueError("give either cron or at")
        return self


class SchedulePreview(Reply):
    """The next `times` of these fields, at most three, in whole seconds; `in_words` is cron in English."""

    ok: bool = True
    in_words: str | None = None
    times: list[int]


class Occurrence(Reply):
    """One time of a schedule. `planned_at` is when it was due, `noted_at` when it was dealt with.

    `missed` counts the times before it that nobody ran. `turn_state` and `outcome` are those of its turn now,
    null when its session is gone.
    """

    occurrence_id: str
    schedule_id: str
    planned_at: int
    noted_at: int
    by_hand: bool = False
    state: str
    missed: int = 0
    session_id: str | None = None
    turn_index: int | None = None
    turn_state: str | None = None
    outcome: str | None = None
    error: str | None = None
    code: str | None = None


class Schedule(Reply):
    """A prompt and its times. Times are whole seconds; `next_at` is null while it is paused or ended.

    `in_words` is its cron in English, `last` what became of its latest time. `reason` says why it has ended.
    `session` is what new sessions are made from; of its MCP servers only the names are shown.
    """

    schedule_id: str
    title: str = ""
    prompt: str
    cron: str | None = None
    in_words: str | None = None
    at: int | None = None
    timezone: str
    session_id: str | None = None
    session: Json | None = None
    overlap: str
    missed: str
    state: str
    reason: str | None = None
    next_at: int | None = None
    last: Occurrence | None = None
    created_at: int


class ScheduleReply(Reply):
    ok: bool = True
    schedule: Schedule


class SchedulePage(Reply):
    """The oldest come first; `next` is the cursor of the following page."""

    ok: bool = True
    schedules: list[Schedule]
    count: int
    next: str | None = None


class OccurrenceReply(Reply):
    ok: bool = True
    occurrence: Occurrence


class OccurrencePage(Reply):
    """The newest come first; `next` is the cursor of the following page."""

    ok: bool = True
    occurrences: list[Occurrence]
    count: int
    next: str | None = None
