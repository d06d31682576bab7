"""What tests of schedules share: a whole server without its port, and a timekeeper whose clock they move."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from clawdforge.core.clock import SECOND, SystemClock
from clawdforge.core.models.principal import Principal
from clawdforge.core.models.rows import TurnRow
from clawdforge.core.models.schedules import OccurrenceRow, ScheduleRow
from clawdforge.core.rules.quotas import NO_QUOTAS
from clawdforge.core.services.occurrences import Occurrences
from clawdforge.core.services.schedules import ScheduleService
from clawdforge.core.services.timekeeper import Timekeeper
from clawdforge.parts import Parts, open_parts
from clawdforge.wire.base import from_iso
from clawdforge.wire.schedules import ChangeSchedule, CreateSchedule
from clawdforge.wire.scopes import Scope
from clawdforge.wire.session import CreateSession, Retention
from tests.unit.supervised import APP, make_settings

BY = Principal(app=APP, scopes=frozenset(Scope))
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


class Moved(SystemClock):
    """A clock that the test moves. The steady one goes on only where time passes, not where it is set."""

    def __init__(self) -> None:
        self.at = from_iso("2026-06-01T08:59:30Z")
        self.passed = 0

    def now(self) -> int:
        return self.at

    def steady(self) -> int:
        return self.passed

    def wait(self, micros: int) -> None:
        self.at += micros
        self.passed += micros

    def set_by(self, micros: int) -> None:
        self.at += micros


class Desk:
    def __init__(self, parts: Parts, clock: Moved) -> None:
        self.parts = parts
        self.clock = clock
        self.store = parts.services.turns._store
        self.keeper, self.service = self.make()

    def make(self) -> tuple[Timekeeper, ScheduleService]:
        """A server's, as after a start."""
        services = self.parts.services
        occurrences = Occurrences(self.store, self.clock, services.sessions, services.turns)
        keeper = Timekeeper(self.store, self.clock, occurrences, services.computing, is_on=True)
        service = ScheduleService(
            self.store, self.clock, services.sessions, occurrences, NO_QUOTAS, keeper.wake, is_on=True
        )
        return keeper, service

    async def add(self, prompt: str = "echo hi", **fields: Any) -> ScheduleRow:
        given = {"prompt": prompt, "session": CreateSession(), **fields}
        given |= {} if "at" in fields else {"cron": fields.get("cron", "0 9 * * *")}
        if "session_id" in fields:
            del given["session"]
        return await self.service.create(BY, CreateSchedule.model_validate(given))

    async def change(self, row: ScheduleRow, **fields: Any) -> ScheduleRow:
        return await self.service.change(BY, row.schedule_id, ChangeSchedule.model_validate(fields))

    async def session(self) -> str:
        made = await self.parts.services.sessions.create(APP, CreateSession(retention=Retention.KEEP))
        return made.row.session_id

    async def look(self) -> float:
        """Deal with all that is due; for how many seconds nothing is."""
        while (seconds := await self.keeper.look()) == 0.0:
            pass
        return seconds

    async def history(self, row: ScheduleRow) -> list[tuple[OccurrenceRow, TurnRow | None]]:
        return (await self.service.history(APP, row.schedule_id, 100, None))[0]

    async def states(self, row: ScheduleRow) -> list[str]:
        return [one.state.value for one, _ in await self.history(row)]

    async def get(self, row: ScheduleRow) -> ScheduleRow:
        return await self.service.get(APP, row.schedule_id)

    async def ended(self, row: ScheduleRow) -> list[TurnRow]:
        """Its turns, oldest first, once all have ended."""
        turns = []
        for one, _ in await self.history(row):
            if one.session_id is not None and one.turn_index is not None:
                service = self.parts.services.turns
                await service.wait(APP, one.session_id, one.turn_index)
                turns.append(await service.get(APP, one.session_id, one.turn_index))
        return turns[::-1]


@asynccontextmanager
async def open_desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with asyncio.timeout(60), open_parts(make_settings(tmp_path)) as parts:
        yield Desk(parts, Moved())
        await parts.supervisor.stop(0)
