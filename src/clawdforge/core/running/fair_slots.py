"""Slots for live agents: a limited number, handed out in turn to the apps that wait."""

import asyncio
from collections import OrderedDict, deque


class FairSlots:
    """Counts slots. Whoever waits is served one app after another, oldest first within an app."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.taken = 0
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def waiting(self) -> int:
        return sum(len(queue) for queue in self._waiting.values())

    def try_take(self) -> bool:
        """Take a slot at once, if one is free and nobody waits for it."""
        if self.taken >= self.size or self._waiting:
            return False
        self.taken += 1
        return True

    async def take(self, app: str) -> None:
        if self.try_take():
            return
        slot: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(app, deque()).append(slot)
        try:
            await slot
        except asyncio.CancelledError:
            if slot.done() and not slot.cancelled():
                self.give_back()
            else:
                self._forget(app, slot)
            raise

    def give_back(self) -> None:
        self.taken -= 1
        while self._waiting and self.taken < self.size:
            app, queue = self._waiting.popitem(last=False)
            slot = queue.popleft()
            if queue:
                self._waiting[app] = queue
            if not slot.done():
                self.taken += 1
                slot.set_result(None)

    def _forget(self, app: str, slot: asyncio.Future[None]) -> None:
        queue = self._waiting.get(app)
        if queue is not None and slot in queue:
            queue.remove(slot)
            if not queue:
                del self._waiting[app]
