"""Schedules: made, changed, paused, run by hand and removed; the timekeeper runs them at their times."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from clawdforge.core.clock import Clock
from clawdforge.core.ids import new_id
from clawdforge.core.models.principal import Principal
from clawdforge.core.models.rows import TurnRow
from clawdforge.core.models.schedules import OccurrenceRow, ScheduleRow
from clawdforge.core.pacing.long_reads import read_rows
from clawdforge.core.ports import Store, Tx, View
from clawdforge.core.rules.quotas import Quotas
from clawdforge.core.rules.schedules import MOST_SCHEDULES, find_first, need_schedule
from clawdforge.core.rules.times import check_cron, find_coming, read_moment, read_zone
from clawdforge.core.rules.turns import need_open
from clawdforge.core.services.occurrences import Occurrences
from clawdforge.core.services.sessions import SessionService
from clawdforge.core.unbroken import Unbroken
from clawdforge.wire.base import Micros
from clawdforge.wire.errors import Conflict, Forbidden, InvalidRequest, LimitExceeded
from clawdforge.wire.schedules import ChangeSchedule, CreateSchedule, PreviewSchedule, ScheduleState
from clawdforge.wire.session import CreateSession, Retention

PREVIEWED: Final = 3
PAUSED: Final = "the app paused it"
OF_A_PERSON: Final = "run "
"""What the id of an occurrence begins with that was run by hand; the others are times."""


class ScheduleService:
    """`is_on` is False where the operator has turned schedules off: then they can be read and removed."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        sessions: SessionService,
        occurrences: Occurrences,
        quotas: Quotas,
        wake: Callable[[], None],
        *,
        is_on: bool,
    ) -> None:
        self._store = store
        self._clock = clock
        self._sessions = sessions
        self._occurrences = occurrences
        self._quotas = quotas
        self._wake = wake
        self._is_on = is_on
        self._unbroken = Unbroken()

    async def find_all(
        self, app: str, limit: int, cursor: str | None
    ) -> tuple[list[ScheduleRow], str | None]:
        return await read_rows(
            self._store, app, limit, lambda view: view.schedules(limit=limit, cursor=cursor)
        )

    async def get(self, app: str, schedule_id: str) -> ScheduleRow:
        return await self._store.read(app, lambda view: need_schedule(view, schedule_id))

    async def find_last(
        self, app: str, schedule_ids: Sequence[str]
    ) -> dict[str, tuple[OccurrenceRow, TurnRow | None]]:
        """What became of the latest time of each; nothing for those that have had none."""

        def work(view: View) -> dict[str, tuple[OccurrenceRow, TurnRow | None]]:
            pages = [view.occurrences(one, limit=1, cursor=None)[0] for one in schedule_ids]
            return {row.schedule_id: (row, _find_turn(view, row)) for page in pages for row in page}

        return await self._store.read(app, work)

    async def preview(self, request: PreviewSchedule) -> list[Micros]:
        """The first times of a schedule that would be made now, refused as it would be.

        In a thread: somebody asks with every key that they type, and to find a rare day takes milliseconds.
        """
        return await asyncio.to_thread(_find_times, request, self._clock.now())

    async def create(self, by: Principal, request: CreateSchedule) -> ScheduleRow:
        self._check_on()
        now = self._clock.now()
        wanted = request.session
        if request.session_id is None:
            await self._sessions.check(by.app, wanted or CreateSession(), may_decide=by.may_decide)
        row = ScheduleRow(
            app_name=by.app,
            schedule_id=new_id(),
            title=request.title,
            prompt=request.prompt,
            **_read_times(request.cron, request.at, request.timezone, now),
            session_id=request.session_id,
            new_session=None if wanted is None else wanted.model_dump(mode="json", exclude_unset=True),
            overlap=request.overlap,
            missed=request.missed,
            token_id=by.token_id,
            may_decide=by.may_decide,
            created_at=now,
        )
        row = replace(row, next_at=find_first(row, now))

        def work(tx: Tx) -> None:
            if tx.count_schedules() >= MOST_SCHEDULES:
                raise LimitExceeded(
                    f"an app may have {MOST_SCHEDULES} schedules;"
                    " remove one: `clawdforge schedules remove ID`"
                )
            self._quotas.check_room(tx)
            _check_session(tx, row)
            tx.add_schedule(row)
            tx.audit(row.session_id, "schedule added", now, _details(row))

        await self._store.write(by.app, work)
        self._wake()
        return row

    async def change(self, by: Principal, schedule_id: str, request: ChangeSchedule) -> ScheduleRow:
        """Change what is given. From then on it spends the budgets of whoever has changed it."""
        self._check_on()
        now = self._clock.now()

        def work(tx: Tx) -> ScheduleRow:
            row = _change(need_schedule(tx, schedule_id), request, now)
            row = replace(row, token_id=by.token_id, may_decide=by.may_decide)
            if row.state is ScheduleState.ON:
                _check_session(tx, row)
            changed = {name: getattr(row, name) for name in CHANGEABLE}
            tx.change_schedule(schedule_id, **changed)
            tx.audit(row.session_id, "schedule changed", now, _details(row))
            return row

        row = await self._store.write(by.app, work)
        self._wake()
        return row

    async def remove(self, app: str, schedule_id: str) -> None:
        """With its history, which has an end, so that all of it is one short write. Its turns stay."""
        now = self._clock.now()

        def work(tx: Tx) -> None:
            row = need_schedule(tx, schedule_id)
            tx.remove_schedule(schedule_id)
            tx.audit(row.session_id, "schedule removed", now, _details(row))

        await self._store.write(app, work)

    async def run(
        self, by: Principal, schedule_id: str, key: str | None
    ) -> tuple[OccurrenceRow, TurnRow | None]:
        """Give the prompt to its session now, with the caller's token, whether the schedule is on or not.

        What refuses it is raised. The same key finds what it did before.
        """
        self._check_on()
        row = await self.get(by.app, schedule_id)
        row = replace(row, token_id=by.token_id, may_decide=by.may_decide)
        occurrence_id = OF_A_PERSON + (key or new_id())
        if await self._find(by.app, schedule_id, occurrence_id) is None:
            try:
                await self._unbroken.run(self._occurrences.run(row, occurrence_id, None))
            except Conflict:
                if await self._find(by.app, schedule_id, occurrence_id) is None:
                    raise
        found = await self._find(by.app, schedule_id, occurrence_id)
        if found is None:  # so many were run at once that it is history no more
            raise Conflict("it was run, but its history is gone; look at the newest turns")
        return found

    async def history(
        self, app: str, schedule_id: str, limit: int, cursor: str | None
    ) -> tuple[list[tuple[OccurrenceRow, TurnRow | None]], str | None]:
        """What became of its times, newest first, each with its turn as that is now."""

        def work(view: View) -> tuple[list[tuple[OccurrenceRow, TurnRow | None]], str | None]:
            need_schedule(view, schedule_id)
            rows, following = view.occurrences(schedule_id, limit=limit, cursor=cursor)
            return [(row, _find_turn(view, row)) for row in rows], following

        return await read_rows(self._store, app, limit, work)

    async def _find(
        self, app: str, schedule_id: str, occurrence_id: str
    ) -> tuple[OccurrenceRow, TurnRow | None] | None:
        def work(view: View) -> tuple[OccurrenceRow, TurnRow | None] | None:
            row = view.occurrence(schedule_id, occurrence_id)
            return None if row is None else (row, _find_turn(view, row))

        return await self._store.read(app, work)

    def _check_on(self) -> None:
        if not self._is_on:
            raise Forbidden(
                "schedules are off here; the operator turns them on with CLAWDFORGE_SCHEDULES=true"
            )


def _find_turn(view: View, row: OccurrenceRow) -> TurnRow | None:
    if row.session_id is None or row.turn_index is None:
        return None
    return view.turn(row.session_id, row.turn_index)


def _find_times(request: PreviewSchedule, now: Micros) -> list[Micros]:
    times = _read_times(request.cron, request.at, request.timezone, now)
    if times["cron"] is None:
        return [times["at"]]
    return find_coming(times["cron"], request.timezone, now, PREVIEWED)


def _read_times(cron: str | None, at: str | None, timezone: str, now: Micros) -> dict[str, Any]:
    """The fields of a row that say when. Raises InvalidRequest for times that never come."""
    read_zone(timezone)
    if cron is not None:
        return {"cron": check_cron(cron, timezone, now), "at": None, "timezone": timezone}
    moment = read_moment(at or "", timezone)
    if moment <= now:
        raise InvalidRequest("the time of `at` has passed; give one that comes")
    return {"cron": None, "at": moment, "timezone": timezone}


def _change(row: ScheduleRow, request: ChangeSchedule, now: Micros) -> ScheduleRow:
    given = request.model_dump(exclude_none=True, exclude={"cron", "at", "timezone", "paused"})
    changed = replace(row, **given)
    zone = request.timezone or row.timezone
    cron = request.cron or (row.cron if request.at is None else None)
    moves = request.cron is not None or request.at is not None or zone != row.timezone
    if moves and (cron is not None or request.at is not None):
        changed = replace(changed, **_read_times(cron, request.at, zone, now))
    elif moves:
        read_zone(zone)
        changed = replace(changed, timezone=zone)
    if row.state is ScheduleState.ENDED and not (request.cron or request.at):
        if request.paused is not None:
            raise Conflict(f"this schedule has ended: {row.reason}; give it another time, or make a new one")
        return changed
    if request.paused or (request.paused is None and row.state is ScheduleState.PAUSED):
        return replace(changed, state=ScheduleState.PAUSED, reason=PAUSED, next_at=None)
    if moves or row.state is not ScheduleState.ON:
        return replace(changed, state=ScheduleState.ON, reason=None, next_at=find_first(changed, now))
    return changed


CHANGEABLE: Final = (
    *("title", "prompt", "cron", "at", "timezone", "overlap", "missed"),
    *("state", "reason", "next_at", "token_id", "may_decide"),
)


def _check_session(view: View, row: ScheduleRow) -> None:
    """Refuse a session that the times of a schedule would find closed."""
    if row.session_id is None:
        return
    if need_open(view, row.session_id).retention is Retention.TTL:
        raise Conflict(
            "this session closes by itself when it is idle; have it kept first:"
            f""" `curl -X PATCH …/sessions/{row.session_id} -d '{{"retention": "keep"}}'`"""
        )


def _details(row: ScheduleRow) -> dict[str, Any]:
    """For the audit: when and where, but not what is said."""
    return {
        "schedule_id": row.schedule_id,
        "cron": row.cron,
        "at": row.at,
        "timezone": row.timezone,
        "state": row.state.value,
    }
