"""The calls about schedules, once, without I/O; as in `_calls`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clawdforge.client import _lazy as lazy
from clawdforge.client._calls import Page, Route, read_model, read_part

if TYPE_CHECKING:
    from clawdforge.wire.schedules import Occurrence, Schedule, SchedulePreview

SCHEDULES: Final[Route[Page[Schedule]]] = Route(
    "GET",
    "/schedules",
    read_part(lambda: lazy.schedules.SchedulePage, lambda page: Page(page.schedules, page.next)),
)
ADD_SCHEDULE: Final[Route[Schedule]] = Route(
    "POST", "/schedules", read_part(lambda: lazy.schedules.ScheduleReply, lambda reply: reply.schedule)
)
PREVIEW_SCHEDULE: Final[Route[SchedulePreview]] = Route(
    "POST", "/schedules/preview", read_model(lambda: lazy.schedules.SchedulePreview)
)
SCHEDULE: Final[Route[Schedule]] = Route(
    "GET",
    "/schedules/{schedule_id}",
    read_part(lambda: lazy.schedules.ScheduleReply, lambda reply: reply.schedule),
)
CHANGE_SCHEDULE: Final[Route[Schedule]] = Route(
    "PATCH",
    "/schedules/{schedule_id}",
    read_part(lambda: lazy.schedules.ScheduleReply, lambda reply: reply.schedule),
)
REMOVE_SCHEDULE: Final = Route("DELETE", "/schedules/{schedule_id}", read_model(lambda: lazy.admin.Done))
RUN_SCHEDULE: Final[Route[Occurrence]] = Route(
    "POST",
    "/schedules/{schedule_id}/run",
    read_part(lambda: lazy.schedules.OccurrenceReply, lambda reply: reply.occurrence),
)
SCHEDULE_HISTORY: Final[Route[Page[Occurrence]]] = Route(
    "GET",
    "/schedules/{schedule_id}/history",
    read_part(lambda: lazy.schedules.OccurrencePage, lambda page: Page(page.occurrences, page.next)),
)
