"""Slots for live agents: handed out in turn to the apps that wait, and some only to apps that have none.

An app may be limited to so many. Who comes *beside* another, as the agent of a sub-session does beside that
of its parent, which may wait for it, is not counted when the app has all that it may have.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from dataclasses import dataclass
from typing import Final

RESERVED: Final = 5
"""One slot in so many is kept for apps that have none: an app whose turns take long keeps nobody waiting."""


@dataclass(eq=False, slots=True)
class _Waiting:
    """Somebody in the queue; what it is told is whether its slot is counted."""

    slot: asyncio.Future[bool]
    beside: bool


class FairSlots:
    """Counts slots. Whoever waits is served one app after another, oldest first within an app."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.taken = 0
        self._held: Counter[str] = Counter()
        self._uncounted: Counter[str] = Counter()
        self._most: dict[str, int] = {}
        self._waiting: OrderedDict[str, deque[_Waiting]] = OrderedDict()

    @property
    def waiting(self) -> int:
        return sum(len(queue) for queue in self._waiting.values())

    @property
    def apps_waiting(self) -> list[str]:
        return list(self._waiting)

    def has_beside(self, app: str) -> bool:
        """Whether somebody of this app waits on whom another of its agents may be waiting."""
        return any(one.beside for one in self._waiting.get(app, ()))

    def limit(self, app: str, most: int | None) -> None:
        """How many slots an app may have. Those that it has beyond a new limit it keeps."""
        if most is None:
            self._most.pop(app, None)
        else:
            self._most[app] = most
        self._serve()

    def lacking(self, app: str, giving: int = 0) -> int:
        """How many slots have to become free before this app can have one, whatever its own limit is.

        Besides those that it is `giving` back itself.
        """
        bound = self.size - (self.size // RESERVED if self._held[app] > giving else 0)
        return max(0, self.taken - giving - bound + 1)

    def excess(self, app: str) -> int:
        """How many of its own slots the app has to give back before it can have another."""
        most = self._most.get(app)
        counted = self._held[app] - self._uncounted[app]
        return 0 if most is None else max(0, counted - most + 1)

    def is_wanted(self, app: str, leaving: Counter[str], own: int) -> bool:
        """Whether somebody waits for a slot of this app: one of its own, which may have no other, or one of
        an app that will have no more than it. Who has more gets its own back first.

        So many slots of each app are `leaving` anyway; `own` of them are this app's and count against its
        limit.
        """
        if app in self._waiting and self.excess(app) > own:
            return True
        soon, wanting = self._share_out(leaving)
        return any(other == app or soon[other] <= self.held(app) for other in wanting)

    def held_soon(self, app: str, leaving: Counter[str]) -> int:
        """How many it has once those that are leaving are shared out.

        Whoever asks for thirty at once has none yet, but is no poorer than an app with two once fourteen were
        sent away for it.
        """
        return self._share_out(leaving)[0][app]

    def _share_out(self, leaving: Counter[str]) -> tuple[Counter[str], Counter[str]]:
        """Who has how many when those that are leaving have gone to whoever waits, and who waits then."""
        soon = self._held - leaving
        wanting = Counter({app: len(line) for app, line in self._waiting.items() if not self.excess(app)})
        left = leaving.total()
        while left and wanting:
            for app in list(wanting)[:left]:
                soon[app] += 1
                left -= 1
                wanting -= Counter((app,))
        return soon, wanting

    def held(self, app: str) -> int:
        return self._held[app]

    def try_take(self, app: str) -> bool:
        """Take a slot at once. Whoever waits may not have it: slots are given out as soon as they can be."""
        if self.lacking(app) or self.excess(app):
            return False
        self._give(app, counted=True)
        return True

    def try_take_beside(self, app: str) -> bool:
        """Take a slot that does not count, if only the limit of the app is in the way."""
        if self.lacking(app) or not self.excess(app):
            return False
        self._give(app, counted=False)
        return True

    async def take(self, app: str, *, beside: bool = False) -> bool:
        """Wait for a slot, however long that takes: whoever has less time than that cancels.

        Whether it is counted; `give_back` has to be told.
        """
        if self.try_take(app):
            return True
        if beside and self.try_take_beside(app):
            return False
        one = _Waiting(asyncio.get_running_loop().create_future(), beside)
        self._waiting.setdefault(app, deque()).append(one)
        try:
            return await one.slot
        except asyncio.CancelledError:
            if one.slot.done() and not one.slot.cancelled():
                self.give_back(app, counted=one.slot.result())
            else:
                self._forget(app, one)
            raise

    def give_back(self, app: str, *, counted: bool = True) -> None:
        self.taken -= 1
        self._held[app] -= 1
        self._uncounted[app] -= not counted
        if not self._held[app]:
            del self._held[app]
            del self._uncounted[app]
        self._serve()

    def _serve(self) -> None:
        while (found := self._next()) is not None:
            app, one = found
            queue = self._waiting.pop(app)
            queue.remove(one)
            if queue:
                self._waiting[app] = queue
            if not one.slot.done():
                counted = not self.excess(app)
                self._give(app, counted=counted)
                one.slot.set_result(counted)

    def _next(self) -> tuple[str, _Waiting] | None:
        """The first app in line for whom there is a slot, and who of it is to have it."""
        for app, queue in self._waiting.items():
            if self.lacking(app):
                continue
            is_full = bool(self.excess(app))
            one = next((one for one in queue if one.beside or not is_full), None)
            if one is not None:
                return app, one
        return None

    def _give(self, app: str, *, counted: bool) -> None:
        self.taken += 1
        self._held[app] += 1
        self._uncounted[app] += not counted

    def _forget(self, app: str, one: _Waiting) -> None:
        queue = self._waiting.get(app)
        if queue is not None and one in queue:
            queue.remove(one)
            if not queue:
                del self._waiting[app]
