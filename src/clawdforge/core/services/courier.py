"""The courier: makes the deliveries of webhooks that are due, some at a time, in turn.

What is to be delivered stands in the store, written with its event. Apps take turns, and so do the endpoints
of an app. The courier holds nothing that counts: a delivery whose answer it did not live to note is made
again, with the same id.
"""

import asyncio
import contextlib
import logging
from collections import Counter
from functools import partial
from typing import Final

import orjson

from clawdforge.core.clock import SECOND, Clock
from clawdforge.core.models.rows import Commit, TurnRow
from clawdforge.core.models.webhooks import DeliveryRow, EndpointRow
from clawdforge.core.ports import Store, View
from clawdforge.core.ports.webhooks import Answer, Receivers, Undelivered, WaitingDeliveries
from clawdforge.core.rules.traces import find_traceparent
from clawdforge.core.rules.webhooks import FAR, find_objection, give_up, is_due, note_try, sign
from clawdforge.wire.base import Micros
from clawdforge.wire.errors import Unavailable
from clawdforge.wire.event import EventType

Place = tuple[str, str]
"""An app and one of its endpoints."""
log = logging.getLogger(__name__)
PLACES: Final = 16
PLACES_OF_APP: Final = 4
"""So receivers that hang keep at most these of an app, and an app none of the others'."""
PLACES_OF_ENDPOINT: Final = PLACES_OF_APP // 2
"""So one that hangs leaves some to the others of its app."""
LOOK_SECS: Final = 1.0
"""Most of what is due comes with an event, which wakes; a one-shot run that crosses a budget has none."""
STORE_AWAY_SECS: Final = 5.0
TOLD_OF: Final = frozenset(
    {
        EventType.TURN_ENDED.value,
        EventType.PERMISSION_REQUESTED.value,
        EventType.SESSION_CLOSED.value,
        EventType.BUDGET_WARNED.value,
    }
)


class Courier:
    def __init__(
        self, store: Store, clock: Clock, receivers: Receivers | None, *, is_traced: bool = False
    ) -> None:
        self._is_traced = is_traced
        self._store = store
        self._clock = clock
        self._receivers = receivers
        self._woken = asyncio.Event()
        self._under_way: dict[str, Place] = {}  # deliveries, and where they go
        self._starts = 0
        self._turns: dict[str | Place, int] = {}  # which start was the last of an app, or an endpoint
        self.tries: Counter[str] = Counter({"delivered": 0, "failed": 0})
        if receivers is not None:
            store.listen(self._on_commit)

    def wake(self) -> None:
        """There may be something to deliver."""
        self._woken.set()

    async def run(self) -> None:
        """Deliver for ever. While the store is away nothing is lost, since nothing is held here."""
        if self._receivers is None:
            await asyncio.get_running_loop().create_future()  # webhooks are off
            return
        self._under_way.clear()
        async with asyncio.TaskGroup() as flights:
            while True:
                self._woken.clear()
                try:
                    wait = await self._start_due(flights, self._receivers)
                except Unavailable as error:
                    log.warning("no deliveries: %s", error.message)
                    wait = STORE_AWAY_SECS
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await self._woken.wait()

    async def _start_due(self, flights: asyncio.TaskGroup, receivers: Receivers) -> float:
        """Start what there is room for; how long there will be nothing more to start."""
        now = self._clock.now()
        waiting = await self._store.read_system(lambda view: view.waiting_deliveries())
        self._forget_others(waiting)
        due: dict[str, list[Place]] = {}
        for one in waiting:
            if is_due(one.first, one.last, now):
                due.setdefault(one.app, []).append((one.app, one.endpoint_id))
        for share in range(1, PLACES_OF_APP + 1):
            for app in sorted(due, key=self._find_turn):
                if len(self._under_way) >= PLACES:
                    return LOOK_SECS
                if self._count(app) >= share:
                    continue
                row = await self._find_next(app, due[app])
                if row is not None:
                    self._note_start(row)
                    flights.create_task(self._deliver(row, receivers), name=f"webhook {row.delivery_id}")
        later = [one.first - now for one in waiting if one.first > now]
        return min(LOOK_SECS, min(later, default=FAR) / SECOND)

    async def _find_next(self, app: str, due: list[Place]) -> DeliveryRow | None:
        """Of the endpoint with the fewest under way; of these, of the one whose last start is longest ago."""
        now = self._clock.now()
        for place in sorted(due, key=lambda one: (self._count(one), self._find_turn(one))):
            count = self._count(place)
            if count >= PLACES_OF_ENDPOINT:
                return None
            due_to = partial(_find_due, endpoint_id=place[1], now=now, limit=count + 1)
            rows = await self._store.read(app, due_to)
            row = next((row for row in rows if row.delivery_id not in self._under_way), None)
            if row is not None:
                return row
            due.remove(place)
        return None

    def _note_start(self, row: DeliveryRow) -> None:
        place = (row.app_name, row.endpoint_id)
        self._starts += 1
        self._under_way[row.delivery_id] = place
        self._turns[row.app_name] = self._turns[place] = self._starts

    def _find_turn(self, one: str | Place) -> int:
        return self._turns.get(one, 0)

    def _forget_others(self, waiting: list[WaitingDeliveries]) -> None:
        """So that what is known of turns does not grow for ever."""
        left = {name for one in waiting for name in (one.app, (one.app, one.endpoint_id))}
        self._turns = {one: turn for one, turn in self._turns.items() if one in left}

    def _count(self, one: str | Place) -> int:
        return sum(one in (place, place[0]) for place in self._under_way.values())

    async def _deliver(self, row: DeliveryRow, receivers: Receivers) -> None:
        """Try it once. Whatever goes wrong becomes the outcome of this try, and harms no other."""
        try:
            await self._try(row, receivers)
        except Unavailable as problem:
            log.warning("the outcome of a delivery is not noted: %s", problem.message)
            await asyncio.sleep(STORE_AWAY_SECS)
        except Exception:  # the top of a task, which would take all other deliveries with it
            log.exception("a delivery could not be made", extra={"delivery_id": row.delivery_id})
            with contextlib.suppress(Unavailable):
                await self._note(row, None, "the server could not send it; its log says more")
        finally:
            self._under_way.pop(row.delivery_id, None)
            self._woken.set()

    async def _try(self, row: DeliveryRow, receivers: Receivers) -> None:
        app = row.app_name
        endpoint, turn = await self._store.read(
            app, lambda view: (view.endpoint(row.endpoint_id), _find_turn(view, row))
        )
        at = self._clock.now()
        why = find_objection(row, endpoint, at)
        if endpoint is None or why is not None:
            await self._store.write(app, lambda tx: give_up(tx, row.delivery_id, why, at))
            return
        traced = {"traceparent": find_traceparent(turn)} if turn is not None and self._is_traced else {}
        await self._note(row, *await self._post(row, endpoint, receivers, traced))

    async def _note(self, row: DeliveryRow, answer: Answer | None, error: str | None) -> None:
        at = self._clock.now()
        status, retry_after = answer or (None, None)
        await self._store.write(
            row.app_name, lambda tx: note_try(tx, row.delivery_id, status, error, at, retry_after)
        )
        self.tries["delivered" if error is None else "failed"] += 1

    async def _post(
        self, row: DeliveryRow, endpoint: EndpointRow, receivers: Receivers, traced: dict[str, str]
    ) -> tuple[Answer | None, str | None]:
        """The answer, and what is wrong if it did not arrive."""
        body = row.body.encode()
        signed = sign(endpoint, row.delivery_id, body, self._clock.now())
        headers = {"content-type": "application/json", **traced, **signed}
        try:
            answer = await receivers.post(endpoint.url, headers, body)
        except Undelivered as error:
            return None, str(error)
        if 200 <= answer.status < 300:
            return answer, None
        if 300 <= answer.status < 400:
            return answer, f"it answered {answer.status}; redirects are not followed"
        return answer, f"it answered {answer.status}"

    def _on_commit(self, commit: Commit) -> None:
        if not commit.events or not TOLD_OF.isdisjoint(commit.types):
            self._woken.set()


def _find_due(view: View, endpoint_id: str, now: Micros, limit: int) -> list[DeliveryRow]:
    return view.due_deliveries(endpoint_id, now, now + FAR, limit)


def _find_turn(view: View, row: DeliveryRow) -> TurnRow | None:
    """The turn that a delivery tells of, if it is one's."""
    index = orjson.loads(row.body)["data"].get("turn")
    if row.session_id is None or not isinstance(index, int):
        return None
    return view.turn(row.session_id, index)
