"""Slots for live agents: handed out in turn to the apps that wait, and some only to apps that have none."""

import asyncio
from collections import Counter, OrderedDict, deque
from typing import Final

RESERVED: Final = 5
"""One slot in so many is kept for apps that have none: an app whose turns take long keeps nobody waiting."""


class FairSlots:
    """Counts slots. Whoever waits is served one app after another, oldest first within an app."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.taken = 0
        self._held: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def waiting(self) -> int:
        return sum(len(queue) for queue in self._waiting.values())

    @property
    def apps_waiting(self) -> list[str]:
        return list(self._waiting)

    def lacking(self, app: str) -> int:
        """How many slots have to become free before this app can have one."""
        bound = self.size - (self.size // RESERVED if self._held[app] else 0)
        return max(0, self.taken - bound + 1)

    def try_take(self, app: str) -> bool:
        """Take a slot at once. Whoever waits may not have it: slots are given out as soon as they can be."""
        if self.lacking(app):
            return False
        self._give(app)
        return True

    async def take(self, app: str) -> None:
        """Wait for a slot, however long that takes: whoever has less time than that cancels."""
        if self.try_take(app):
            return
        slot: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(app, deque()).append(slot)
        try:
            await slot
        except asyncio.CancelledError:
            if slot.done() and not slot.cancelled():
                self.give_back(app)
            else:
                self._forget(app, slot)
            raise

    def give_back(self, app: str) -> None:
        self.taken -= 1
        self._held[app] -= 1
        if not self._held[app]:
            del self._held[app]
        while (chosen := self._next()) is not None:
            queue = self._waiting.pop(chosen)
            slot = queue.popleft()
            if queue:
                self._waiting[chosen] = queue
            if not slot.done():
                self._give(chosen)
                slot.set_result(None)

    def _next(self) -> str | None:
        return next((app for app in self._waiting if not self.lacking(app)), None)

    def _give(self, app: str) -> None:
        self.taken += 1
        self._held[app] += 1

    def _forget(self, app: str, slot: asyncio.Future[None]) -> None:
        queue = self._waiting.get(app)
        if queue is not None and slot in queue:
            queue.remove(slot)
            if not queue:
                del self._waiting[app]
