"""The courier: makes the deliveries of webhooks that are due, some at a time, apps in turn.

What is to be delivered stands in the store, written with its event. The courier holds nothing that counts: a
delivery whose answer it did not live to note is made again, with the same id.
"""

import asyncio
import contextlib
import logging
from collections import Counter
from typing import Final

from clawdforge.core.model import SECOND, Clock, Commit
from clawdforge.core.ports import Store
from clawdforge.core.ports.webhooks import Receivers, Undelivered
from clawdforge.core.rules.webhooks import FAR, give_up, is_due, note_try, sign
from clawdforge.core.webhook_model import DeliveryRow, EndpointRow
from clawdforge.wire.errors import Unavailable
from clawdforge.wire.event import EventType

log = logging.getLogger(__name__)
PLACES: Final = 16
PLACES_OF_APP: Final = 4
"""So receivers that hang keep at most these of an app, and an app none of the others'."""
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
    def __init__(self, store: Store, clock: Clock, receivers: Receivers | None) -> None:
        self._store = store
        self._clock = clock
        self._receivers = receivers
        self._woken = asyncio.Event()
        self._under_way: dict[str, str] = {}  # deliveries, and whose they are
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
        due = [one.app for one in waiting if is_due(one.first, one.last, now)]
        for share in range(1, PLACES_OF_APP + 1):
            for app in tuple(due):
                if len(self._under_way) >= PLACES:
                    return LOOK_SECS
                if self._count(app) >= share:
                    continue
                row = await self._find_next(app)
                if row is None:
                    due.remove(app)
                else:
                    self._under_way[row.delivery_id] = app
                    flights.create_task(self._deliver(row, receivers), name=f"webhook {row.delivery_id}")
        later = [one.first - now for one in waiting if one.first > now]
        return min(LOOK_SECS, min(later, default=FAR) / SECOND)

    async def _find_next(self, app: str) -> DeliveryRow | None:
        now, limit = self._clock.now(), self._count(app) + 1
        rows = await self._store.read(app, lambda view: view.due_deliveries(now, now + FAR, limit))
        return next((row for row in rows if row.delivery_id not in self._under_way), None)

    def _count(self, app: str) -> int:
        return sum(one == app for one in self._under_way.values())

    async def _deliver(self, row: DeliveryRow, receivers: Receivers) -> None:
        """Try it once. Whatever goes wrong becomes the outcome of this try, and harms no other."""
        try:
            app = row.app_name
            endpoint = await self._store.read(app, lambda view: view.endpoint(row.endpoint_id))
            if endpoint is None or endpoint.disabled is not None:
                why = "the webhook was removed" if endpoint is None else f"it is off: {endpoint.disabled}"
                at = self._clock.now()
                await self._store.write(app, lambda tx: give_up(tx, row.delivery_id, why, at))
                return
            status, error = await self._post(row, endpoint, receivers)
            self.tries["delivered" if error is None else "failed"] += 1
            at = self._clock.now()
            await self._store.write(app, lambda tx: note_try(tx, row.delivery_id, status, error, at))
        except Unavailable as problem:
            log.warning("the outcome of a delivery is not noted: %s", problem.message)
            await asyncio.sleep(STORE_AWAY_SECS)
        finally:
            self._under_way.pop(row.delivery_id, None)
            self._woken.set()

    async def _post(
        self, row: DeliveryRow, endpoint: EndpointRow, receivers: Receivers
    ) -> tuple[int | None, str | None]:
        """The status of the answer, and what is wrong if it did not arrive."""
        body = row.body.encode()
        signed = sign(endpoint, row.delivery_id, body, self._clock.now())
        headers = {"content-type": "application/json", **signed}
        try:
            status = await receivers.post(endpoint.url, headers, body)
        except Undelivered as error:
            return None, str(error)
        except Exception:
            log.exception("a delivery could not be sent", extra={"delivery_id": row.delivery_id})
            return None, "the server could not send it; its log says more"
        if 200 <= status < 300:
            return status, None
        if 300 <= status < 400:
            return status, f"it answered {status}; redirects are not followed"
        return status, f"it answered {status}"

    def _on_commit(self, commit: Commit) -> None:
        if not commit.events or any(event.type in TOLD_OF for event in commit.events):
            self._woken.set()
