"""An app's schedules, and what became of their times."""

from typing import Any, Final

from clawdforge.core.models.schedules import OccurrenceRow, ScheduleRow
from clawdforge.stores.sqlite.own_rows import OwnRows
from clawdforge.stores.sqlite.search import from_cursor, to_cursor
from clawdforge.wire.errors import ScheduleNotFound

LATEST: Final = (2**62, "")
EARLIEST: Final = (-1, "")


class ScheduleRows(OwnRows):
    """What can be read."""

    def schedule(self, schedule_id: str) -> ScheduleRow | None:
        return self._get(self._q.schedule, "schedule", schedule=schedule_id)

    def schedules(self, *, limit: int, cursor: str | None) -> tuple[list[ScheduleRow], str | None]:
        at, last = EARLIEST if cursor is None else from_cursor(cursor, int, str)
        rows = self._list(self._q.schedule, "schedules", at=at, last=last, limit=limit + 1)
        page = rows[:limit]
        more = len(rows) > limit and bool(page)
        return page, to_cursor(page[-1].created_at, page[-1].schedule_id) if more else None

    def count_schedules(self) -> int:
        return self._number("count_schedules")

    def occurrence(self, schedule_id: str, occurrence_id: str) -> OccurrenceRow | None:
        found = {"schedule": schedule_id, "occurrence": occurrence_id}
        return self._get(self._q.occurrence, "occurrence", **found)

    def occurrences(
        self, schedule_id: str, *, limit: int, cursor: str | None
    ) -> tuple[list[OccurrenceRow], str | None]:
        at, last = LATEST if cursor is None else from_cursor(cursor, int, str)
        rows = self._list(
            self._q.occurrence, "occurrences", schedule=schedule_id, at=at, last=last, limit=limit + 1
        )
        page = rows[:limit]
        more = len(rows) > limit and bool(page)
        return page, to_cursor(page[-1].planned_at, page[-1].occurrence_id) if more else None


class ScheduleChanges(ScheduleRows):
    """What can be changed."""

    def add_schedule(self, row: ScheduleRow) -> None:
        self._check_own(row.app_name)
        self._db.run(self._q.schedule.insert, self._q.schedule.values(row))

    def change_schedule(self, schedule_id: str, **changes: Any) -> None:
        assignments, values = self._q.schedule.changes(changes)
        sql = f"UPDATE schedules SET {assignments} WHERE app_name = :app AND schedule_id = :one"  # noqa: S608 - names checked by the codec
        if self._db.run(sql, {"app": self.app, "one": schedule_id, **values}) == 0:
            raise ScheduleNotFound

    def remove_schedule(self, schedule_id: str) -> None:
        self._run("remove_occurrences_of", schedule=schedule_id)
        self._run("remove_schedule", schedule=schedule_id)

    def add_occurrence(self, row: OccurrenceRow) -> None:
        self._check_own(row.app_name)
        self._db.run(self._q.occurrence.insert, self._q.occurrence.values(row))

    def trim_occurrences(self, schedule_id: str, keep: int) -> None:
        self._run("trim_occurrences", schedule=schedule_id, keep=keep)
