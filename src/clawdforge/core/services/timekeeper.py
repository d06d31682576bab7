"""The timekeeper: runs what schedules have due, some at a time, and sleeps until the next of their times.

It holds nothing that counts. When each schedule is due stands in the store, and moves on in the transaction
that deals with it. Where somebody has set the clock back, and at every start, what comes next is found anew.
"""

import asyncio
import contextlib
import logging
from collections import Counter
from functools import partial
from itertools import zip_longest
from typing import Final

from clawdforge.core.clock import SECOND, Clock
from clawdforge.core.models.schedules import ScheduleRow
from clawdforge.core.pacing.computing import Computing
from clawdforge.core.ports import Store
from clawdforge.core.ports.schedules import DueSchedule
from clawdforge.core.rules.schedules import Plan, end, find_first, make_plan, note_undone, reckon
from clawdforge.core.services.occurrences import Occurrences
from clawdforge.wire.errors import InternalError, InvalidRequest, ServerBusy, Stopping, StoreUnavailable
from clawdforge.wire.schedules import OccurrenceState

log = logging.getLogger(__name__)
BATCH: Final = 200
AT_ONCE: Final = 8
LOOK_SECS: Final = 15.0
"""The longest sleep: a clock that is set, or a pause that ends, is noticed after so long."""
AWAY_SECS: Final = 5.0
LONG_AGO: Final = 600 * SECOND
SET_BACK: Final = 2 * SECOND
"""A clock that has gone back by more was set; by less, it is only being put right."""


class Timekeeper:
    """`is_on` is False where the operator has turned schedules off."""

    def __init__(
        self, store: Store, clock: Clock, occurrences: Occurrences, computing: Computing, *, is_on: bool
    ) -> None:
        self._store = store
        self._clock = clock
        self._occurrences = occurrences
        self._computing = computing
        self._is_on = is_on
        self._woken = asyncio.Event()
        self._ahead: int | None = None  # of the wall clock before the one that nobody can set
        self.has_some = False
        """Whether any schedule waits for its time: then a server that nobody asks is not idle."""
        self.done: Counter[str] = Counter({state.value: 0 for state in OccurrenceState})

    def wake(self) -> None:
        """There may be something due, or something to wait for."""
        self._woken.set()

    async def run(self) -> None:
        """Run what is due, for ever. While the store is away nothing is lost, since nothing is held here."""
        if not self._is_on:
            await asyncio.get_running_loop().create_future()
        self._ahead = None
        while True:
            self._woken.clear()
            try:
                wait = await self.look()
            except (StoreUnavailable, Stopping, ServerBusy) as error:
                log.warning("no schedules are run: %s", error.message)
                wait = AWAY_SECS
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._woken.wait()

    async def look(self) -> float:
        """Deal with some of what is due; for how many seconds there will be nothing more."""
        await self._notice_clock()
        now = self._clock.now()
        due = await self._store.read_system(lambda view: view.due_schedules(now, BATCH))
        if due:
            places = asyncio.Semaphore(AT_ONCE)
            are_done = await asyncio.gather(*(self._carry_out(one, places) for one in take_turns(due)))
            return 0.0 if all(are_done) else AWAY_SECS
        first = await self._store.read_system(lambda view: view.first_schedule())
        self.has_some = first is not None
        return LOOK_SECS if first is None else min(LOOK_SECS, max(0.0, (first - self._clock.now()) / SECOND))

    async def _carry_out(self, one: DueSchedule, places: asyncio.Semaphore) -> bool:
        """False if it is still due, because the store is away or the server stops."""
        async with places:
            try:
                state = await self._carry_out_or_fail(one)
            except (StoreUnavailable, Stopping, ServerBusy) as error:
                log.warning("a schedule waits: %s", error.message)
                return False
        if state is not None:
            self.done[state.value] += 1
        return True

    async def _carry_out_or_fail(self, one: DueSchedule) -> OccurrenceState | None:
        """Whatever goes wrong with one schedule becomes its history, and harms no other."""
        row = await self._store.read(one.app, lambda view: view.schedule(one.schedule_id))
        try:
            plan = None if row is None else await self._make_plan(row)
        except InvalidRequest as error:
            why = f"its times cannot be told any more: {error.message}"
            await self._store.write(one.app, lambda tx: end(tx, one.schedule_id, why))
            return None
        if row is None or plan is None:
            return None
        try:
            return await self._occurrences.carry_out(row, plan)
        except (StoreUnavailable, Stopping, ServerBusy):
            raise
        except Exception:  # the top of a task, which would take all other schedules with it
            log.exception("a schedule could not be run", extra={"schedule_id": one.schedule_id})
            failed, at = InternalError("the server could not run it; its log says more"), self._clock.now()
            await self._store.write(one.app, lambda tx: note_undone(tx, one.schedule_id, plan, failed, at))
            return OccurrenceState.REFUSED

    async def _make_plan(self, row: ScheduleRow) -> Plan | None:
        """A thread counts what was missed: a thousand times take a tenth of a second."""
        now = self._clock.now()
        if row.next_at is None or now - row.next_at < LONG_AGO:
            return make_plan(row, now)
        return await self._computing.run(row.app_name, partial(make_plan, row, now))

    async def _notice_clock(self) -> None:
        """Find anew what comes next where the clock was set back; at first as if it had been."""
        ahead = self._clock.now() - self._clock.steady()
        was, self._ahead = self._ahead, ahead
        if was is not None and was - ahead <= SET_BACK:
            return
        try:
            await self._reckon_all()
        except BaseException:
            self._ahead = None
            raise

    async def _reckon_all(self) -> None:
        page = await self._find_waiting("", "")
        while page:
            for one in page:
                await self._reckon(one)
            page = await self._find_waiting(page[-1].app, page[-1].schedule_id)

    async def _find_waiting(self, app: str, schedule_id: str) -> list[DueSchedule]:
        return await self._store.read_system(lambda view: view.waiting_schedules((app, schedule_id), BATCH))

    async def _reckon(self, one: DueSchedule) -> None:
        row = await self._store.read(one.app, lambda view: view.schedule(one.schedule_id))
        earlier = self._find_earlier(row)
        if row is not None and earlier is not None:
            await self._store.write(one.app, lambda tx: reckon(tx, one.schedule_id, one.next_at, earlier))

    def _find_earlier(self, row: ScheduleRow | None) -> int | None:
        if row is None or row.cron is None or row.next_at is None:
            return None
        now = self._clock.now()
        try:
            first = find_first(row, now)
        except InvalidRequest:
            return None  # it ends in words when it is due
        return first if first is not None and now < first < row.next_at else None


def take_turns(due: list[DueSchedule]) -> list[DueSchedule]:
    """One of each app, then the next of each: an app with many does not keep the others waiting."""
    apps: dict[str, list[DueSchedule]] = {}
    for one in due:
        apps.setdefault(one.app, []).append(one)
    return [one for round_ in zip_longest(*apps.values()) for one in round_ if one is not None]
