"""Forge routes about schedules: prompts that the server submits by itself, and what became of each time."""

from functools import partial
from typing import Annotated, Final

from starlette.responses import Response

from clawdforge.core.models.rows import TurnRow
from clawdforge.core.models.schedules import OccurrenceRow, ScheduleRow
from clawdforge.core.rules.mcp_servers import name_servers
from clawdforge.core.rules.times import say_cron
from clawdforge.core.services.all import Services
from clawdforge.http.errors import json_response
from clawdforge.http.replies.piecewise import shape
from clawdforge.http.requests.marks import Header, Query
from clawdforge.http.routers import Router
from clawdforge.http.routing import App, AppRoute, Caller, Core, Limit
from clawdforge.wire.admin import Done
from clawdforge.wire.base import Json, to_seconds
from clawdforge.wire.schedules import (
    ChangeSchedule,
    CreateSchedule,
    Occurrence,
    OccurrencePage,
    OccurrenceReply,
    PreviewSchedule,
    Schedule,
    SchedulePage,
    SchedulePreview,
    ScheduleReply,
)

SHAPED_AT_ONCE: Final = 20
Cursor = Annotated[str | None, Query(max_length=1024)]
Key = Annotated[str | None, Header(alias="Idempotency-Key", max_length=255, pattern=r"^[\x21-\x7e]+$")]


def routes() -> Router:
    router = Router(AppRoute, tags=["schedules"])
    one = "/schedules/{schedule_id}"
    router.get("/schedules", response_model=SchedulePage)(list_schedules)
    router.post("/schedules", response_model=ScheduleReply)(create)
    router.post("/schedules/preview", response_model=SchedulePreview)(preview)
    router.get(one, response_model=ScheduleReply)(show)
    router.patch(one, response_model=ScheduleReply)(change)
    router.delete(one, response_model=Done)(remove)
    router.post(f"{one}/run", response_model=OccurrenceReply)(run)
    router.get(f"{one}/history", response_model=OccurrencePage)(history)
    return router


async def list_schedules(core: Core, app: App, cursor: Cursor = None, limit: Limit = 100) -> Response:
    """The app's schedules, oldest first, each with what became of its latest time."""
    rows, following = await core.schedules.find_all(app, limit, cursor)
    page = await _shape(core, app, rows)
    return json_response(SchedulePage(schedules=page, count=len(page), next=following))


async def create(core: Core, caller: Caller, body: CreateSchedule) -> Response:
    """Have the server submit a prompt by itself: by `cron` or once, in a session or a new one each time."""
    return json_response(ScheduleReply(schedule=_schedule(await core.schedules.create(caller, body), None)))


async def preview(core: Core, _app: App, body: PreviewSchedule) -> Response:
    """When a schedule with these times would come next, and its cron in words; nothing is made."""
    times = await core.schedules.preview(body)
    said = None if body.cron is None else say_cron(body.cron)
    return json_response(SchedulePreview(in_words=said, times=[to_seconds(one) or 0 for one in times]))


async def show(core: Core, app: App, schedule_id: str) -> Response:
    """A schedule, when it comes next, and what became of its latest time."""
    row = await core.schedules.get(app, schedule_id)
    return json_response(ScheduleReply(schedule=(await _shape(core, app, [row]))[0]))


async def change(core: Core, caller: Caller, schedule_id: str, body: ChangeSchedule) -> Response:
    """Change a schedule's prompt, times or rules, or pause and resume it."""
    row = await core.schedules.change(caller, schedule_id, body)
    return json_response(ScheduleReply(schedule=(await _shape(core, caller.app, [row]))[0]))


async def remove(core: Core, app: App, schedule_id: str) -> Response:
    """Remove a schedule with its history; the turns that it made stay."""
    await core.schedules.remove(app, schedule_id)
    return json_response(Done())


async def run(core: Core, caller: Caller, schedule_id: str, key: Key = None) -> Response:
    """Submit a schedule's prompt now, whether it is on or not; the same `Idempotency-Key` does so once."""
    row, turn = await core.schedules.run(caller, schedule_id, key)
    return json_response(OccurrenceReply(occurrence=_occurrence(row, turn)))


async def history(
    core: Core, app: App, schedule_id: str, cursor: Cursor = None, limit: Limit = 100
) -> Response:
    """What became of a schedule's times, newest first, each with the state of its turn."""
    rows, following = await core.schedules.history(app, schedule_id, limit, cursor)
    page = await shape(partial(core.loop_turns.slice, app), rows, lambda found: _occurrence(*found))
    return json_response(OccurrencePage(occurrences=page, count=len(page), next=following))


async def _shape(core: Services, app: str, rows: list[ScheduleRow]) -> list[Schedule]:
    """In slices: each is its row, a look into its history, one at its turn, and its cron in words."""
    found: list[Schedule] = []
    for start in range(0, len(rows), SHAPED_AT_ONCE):
        if start:
            await core.loop_turns.slice(app)
        few = rows[start : start + SHAPED_AT_ONCE]
        last = await core.schedules.find_last(app, [row.schedule_id for row in few])
        found += [_schedule(row, last.get(row.schedule_id)) for row in few]
    return found


def _schedule(row: ScheduleRow, last: tuple[OccurrenceRow, TurnRow | None] | None) -> Schedule:
    return Schedule(
        schedule_id=row.schedule_id,
        title=row.title,
        prompt=row.prompt,
        cron=row.cron,
        in_words=None if row.cron is None else say_cron(row.cron),
        at=to_seconds(row.at),
        timezone=row.timezone,
        session_id=row.session_id,
        session=_name_servers(row.new_session),
        overlap=row.overlap,
        missed=row.missed,
        state=row.state,
        reason=row.reason,
        next_at=to_seconds(row.next_at),
        last=None if last is None else _occurrence(*last),
        created_at=to_seconds(row.created_at) or 0,
    )


def _name_servers(session: Json | None) -> Json | None:
    """Of MCP servers only the names, as sessions show them: their headers and variables may be secrets."""
    if session is None or not session.get("mcp_servers"):
        return session
    return {**session, "mcp_servers": name_servers(session["mcp_servers"])}


def _occurrence(row: OccurrenceRow, turn: TurnRow | None) -> Occurrence:
    return Occurrence(
        occurrence_id=row.occurrence_id,
        schedule_id=row.schedule_id,
        planned_at=to_seconds(row.planned_at) or 0,
        noted_at=to_seconds(row.noted_at) or 0,
        by_hand=row.by_hand,
        state=row.state,
        missed=row.missed,
        session_id=row.session_id,
        turn_index=row.turn_index,
        turn_state=None if turn is None else turn.state,
        outcome=None if turn is None else turn.outcome,
        error=row.error,
        code=row.code,
    )
