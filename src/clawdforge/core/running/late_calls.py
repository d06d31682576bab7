"""Calls that hardly ever come due, with one timer of the event loop for all of them.

A timer for each would be set and cancelled by every turn, though it is to ring only after an hour.
"""

import asyncio
from collections.abc import Callable
from operator import attrgetter


class LateCalls:
    """Belongs to one event loop."""

    def __init__(self) -> None:
        self._open: dict[LateCall, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def call_later(self, secs: float, call: Callable[[], None]) -> "LateCall":
        """As that of an event loop: `call` in so many seconds, unless it is cancelled."""
        loop = asyncio.get_running_loop()
        late = LateCall(loop.time() + secs, call, self._open)
        if self._timer is None or late.due_at < self._timer.when():
            if self._timer is not None:
                self._timer.cancel()
            self._timer = loop.call_at(late.due_at, self._look)
        return late

    def _look(self) -> None:
        """Call what is due, and come back for the next. Nobody is there: who comes sets the timer again."""
        loop, self._timer = asyncio.get_running_loop(), None
        now = loop.time()
        for late in sorted([late for late in self._open if late.due_at <= now], key=attrgetter("due_at")):
            late.cancel()
            late.call()
        if self._open and self._timer is None:
            self._timer = loop.call_at(min(late.due_at for late in self._open), self._look)


class LateCall:
    __slots__ = ("_open", "call", "due_at")

    def __init__(self, due_at: float, call: Callable[[], None], among: "dict[LateCall, None]") -> None:
        self.due_at = due_at
        self.call = call
        self._open = among
        among[self] = None

    def cancel(self) -> None:
        self._open.pop(self, None)
