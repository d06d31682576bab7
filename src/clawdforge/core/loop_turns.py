"""Who runs next on the event loop where many want to: in each pass of the loop a few of one app, in turn.

A task that is ready runs to its next wait, in the order of readiness, so hundreds of one app's tasks would
run before one of another's. What comes in crowds (requests, pieces of streams) asks for a turn here first,
and so does what is long (slices of exports, of histories that are read whole), of which one runs at a time.
Whoever made a pass long lets as many pass by as it took milliseconds: where nobody else has anything to do
that is no time at all, and where others have, it leaves them at least half of it.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Container
from contextlib import asynccontextmanager
from typing import Final

MANY: Final = 4
"""So many of an app begin in one pass of the loop; one, if that made its last pass long."""

LONG_PASS_SECS: Final = 0.005
REST_SECS: Final = 0.001
MOST_PASSES: Final = 16
"""After a long pass, so many seconds of it are worth one pass for others, up to so many passes."""


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

    def next_app(self, but: Container[str] = ()) -> str | None:
        """Whose turn it is."""
        return next((app for app in self._lines if app not in but), None)

    def let_in(self, app: str, most: int = 1) -> int:
        """Let the first of this app in; how many there were. It goes behind the others."""
        line, count = self._lines.pop(app), 0
        while line and count < most:
            place = line.popleft()
            if not place.done():
                place.set_result(None)
                count += 1
        if line:
            self._lines[app] = line
        return count

    def _forget(self, app: str, place: asyncio.Future[None]) -> None:
        line = self._lines.get(app)
        if line is not None and place in line:
            line.remove(place)
            if not line:
                del self._lines[app]


class LoopTurns:
    """Belongs to one event loop. As long as nobody comes it does nothing."""

    def __init__(self) -> None:
        self._crowd = InTurn()
        self._long = InTurn()
        self._app: str | None = None  # whose pass this is, of those in the crowd
        self._left = 0
        self._is_slicing = False
        self._slow: set[str] = set()
        self._resting: dict[str, int] = {}
        self._rest = 0  # of slices
        self._is_passing = False
        self._passed_at = 0.0

    async def enter(self, app: str) -> None:
        """Before a short step of something that comes in crowds. Alone it does not even wait a pass."""
        self._start()
        if self._app is None and not (self._is_slicing or self._crowd or app in self._resting):
            self._give_pass(app)
        if self._app == app and self._left > 0:
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
            self._is_passing, self._passed_at = True, loop.time()
            loop.call_soon(self._pass)

    def _pass(self) -> None:
        """Runs once in each pass of the loop, after those that were let in by the last one."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        took, self._passed_at = now - self._passed_at, now
        self._count_rests()
        had_slice, had_crowd = self._is_slicing, self._app is not None
        if had_slice:
            self._rest = min(MOST_PASSES, int(took / REST_SECS))
        elif self._app is not None:
            self._judge(self._app, took)
        self._app, self._left, self._is_slicing = None, 0, False
        crowd = self._crowd.next_app(self._resting)
        long = None if self._rest else self._long.next_app()
        if long is not None and (crowd is None or had_crowd):
            self._long.let_in(long)
            self._is_slicing = True
        elif crowd is not None:
            self._give_pass(crowd)
            self._left -= self._crowd.let_in(crowd, self._left)
        is_used = had_slice or had_crowd or self._is_slicing or self._app is not None
        self._is_passing = bool(is_used or self._crowd or self._long or self._rest or self._resting)
        if self._is_passing:
            loop.call_soon(self._pass)

    def _give_pass(self, app: str) -> None:
        self._app, self._left = app, 1 if app in self._slow else MANY

    def _judge(self, app: str, took: float) -> None:
        if took > LONG_PASS_SECS:
            self._slow.add(app)
            self._resting[app] = min(MOST_PASSES, int(took / REST_SECS))
        else:
            self._slow.discard(app)

    def _count_rests(self) -> None:
        self._rest = max(0, self._rest - 1)
        if self._resting:
            self._resting = {app: left - 1 for app, left in self._resting.items() if left > 1}


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
        self._is_held = False
        while not self._is_held and (app := self._waiting.next_app()) is not None:
            self._is_held = self._waiting.let_in(app) == 1
