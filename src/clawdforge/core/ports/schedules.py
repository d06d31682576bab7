"""What core asks of a store about schedules."""

from typing import Any, NamedTuple, Protocol

from clawdforge.core.models.schedules import OccurrenceRow, ScheduleRow
from clawdforge.wire.base import Micros


class DueSchedule(NamedTuple):
    """A schedule of some app, and the time that comes next."""

    app: str
    schedule_id: str
    next_at: Micros


class ScheduleView(Protocol):
    def schedule(self, schedule_id: str) -> ScheduleRow | None: ...
    def schedules(self, *, limit: int, cursor: str | None) -> tuple[list[ScheduleRow], str | None]:
        """A page, oldest first, and the cursor of the next one."""
        ...

    def count_schedules(self) -> int: ...
    def occurrence(self, schedule_id: str, occurrence_id: str) -> OccurrenceRow | None: ...
    def occurrences(
        self, schedule_id: str, *, limit: int, cursor: str | None
    ) -> tuple[list[OccurrenceRow], str | None]:
        """A page, newest first, and the cursor of the next one."""
        ...


class ScheduleTx(ScheduleView, Protocol):
    def add_schedule(self, row: ScheduleRow) -> None: ...
    def change_schedule(self, schedule_id: str, **changes: Any) -> None: ...
    def remove_schedule(self, schedule_id: str) -> None:
        """With its history."""
        ...

    def add_occurrence(self, row: OccurrenceRow) -> None: ...
    def trim_occurrences(self, schedule_id: str, keep: int) -> None:
        """Remove those of its history that are older than the newest `keep`."""
        ...
