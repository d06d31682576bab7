"""Who runs next on the event loop where many want to: a few in each pass of the loop, one app after another.

A task that is ready runs to its next wait, in the order of readiness, so hundreds of one app's tasks would
run before one of another's. What comes in crowds (requests, pieces of streams) asks for a turn here first,
and so does what is long (slices of exports, of histories that are read whole): of these one runs at a
time, and after it the others have as many passes as it took milliseconds.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

MANY: Final = 4
"""So many begin in one pass of the loop."""

LONG_PASS_SECS: Final = 0.005
"""After a pass that took so long, one begins in the next."""

REST_SECS: Final = 0.001
MOST_PASSES: Final = 16
"""A slice is followed by one pass for each of these that it took, and by no more than so many."""


class InTurn:
    """Whoever waits, one line for each app."""

    def __init__(self) -> None:
        self._lines: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._lines)

    async def wait(self, app: str, on_lost: Callable[[], None] = lambda: None) -> None:
        """Wait to be let in; `on_lost` is called if one is let in and cancelled before it knows."""
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lines.setdefault(app, deque()).append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.cancelled():
                self._forget(app, place)
            else:
                on_lost()
            raise

    def let_in(self, most: int) -> int:
        """Let the next ones in; how many there were."""
        count = 0
        while count < most and self._lines:
            app, line = self._lines.popitem(last=False)
            place = line.popleft()
            if line:
                self._lines[app] = line
            if not place.done():
                place.set_result(None)
                count += 1
        return count

    def _forget(self, app: str, place: asyncio.Future[None]) -> None:
        line = self._lines.get(app)
        if line is not None and place in line:
            line.remove(place)
            if not line:
                del self._lines[app]


class LoopTurns:
    """Belongs to one event loop. As long as nobody waits it costs nothing and does nothing."""

    def __init__(self) -> None:
        self._crowd = InTurn()
        self._long = InTurn()
        self._left = MANY
        self._rest = 0
        self._has_sliced = False
        self._is_passing = False
        self._passed_at = 0.0

    async def enter(self, app: str) -> None:
        """Before a short step of something that comes in crowds. Alone it does not even wait a pass."""
        self._start()
        if self._left > 0 and not self._crowd:
            self._left -= 1
            return
        await self._crowd.wait(app)

    async def slice(self, app: str) -> None:
        """Before each slice of something long. Others always have a pass in between."""
        self._start()
        await self._long.wait(app)

    def _start(self) -> None:
        if not self._is_passing:
            loop = asyncio.get_running_loop()
            self._is_passing = True
            self._left, self._passed_at = MANY, loop.time()
            loop.call_soon(self._pass)

    def _pass(self) -> None:
        """Runs once in each pass of the loop, after those that were let in by the last one."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        took, self._passed_at = now - self._passed_at, now
        if self._has_sliced:
            self._has_sliced, self._rest = False, min(MOST_PASSES, int(took / REST_SECS))
        elif self._rest:
            self._rest -= 1
        most = 1 if took > LONG_PASS_SECS else MANY
        begun = self._crowd.let_in(most)
        if not self._rest and self._long.let_in(1):
            self._has_sliced = True
        was_used = self._left < MANY
        self._left = most - begun
        self._is_passing = bool(
            begun or was_used or self._has_sliced or self._rest or self._crowd or self._long
        )
        if self._is_passing:
            loop.call_soon(self._pass)


class FairLock:
    """One at a time; whoever waits is served one app after another."""

    def __init__(self) -> None:
        self._is_held = False
        self._waiting = InTurn()

    @asynccontextmanager
    async def hold(self, app: str) -> AsyncIterator[None]:
        if self._is_held:
            await self._waiting.wait(app, self._hand_on)
        self._is_held = True
        try:
            yield
        finally:
            self._hand_on()

    def _hand_on(self) -> None:
        """It stays held when somebody waits: nobody else can take it before they run."""
        self._is_held = self._waiting.let_in(1) == 1
