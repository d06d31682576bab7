"""Who runs next on the event loop where many want to: in each pass of the loop a few of one app, in turn.

A task that is ready runs to its next wait, in the order of readiness, so hundreds of one app's tasks would
run before one of another's. What comes in crowds (requests, pieces of streams) asks for a turn here first,
and so does what is long (slices of exports, of histories that are read whole), of which one runs at a time.
Whoever has had more than a third of the time while other apps are about rests, so that they have the rest;
strangers already after a sixth. What an app computes in a thread, and its slices, are part of that third.
What the loop itself waits for, such as a processor, is nobody's (`pass_times.py`).
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Container
from typing import Final

from clawdforge.core.pacing.pass_times import PassTimes

MANY: Final = 4
"""So many of an app begin in one pass of the loop; one, if others are about, or if its last pass was long."""

LONG_PASS_SECS: Final = 0.005
PASS_SECS: Final = 0.001
MOST_PASSES: Final = 16
SHORT_REST_SECS: Final = 0.003
MOST_REST_SECS: Final = 0.05
SHARE: Final = 1 / 3
"""With half of it, the turns of an app beside noise took a little more than twice as long as without."""

SHARE_OF_NOBODY: Final = 1 / 6
BURST_SECS: Final = 0.01
"""So far may an app go beyond its share at once; what is sliced may not."""
ABOUT_SECS: Final = 1.0
MOST_SEEN: Final = 1000
NOBODY: Final = ""
"""Whoever has shown no good credential. Somebody who only asks whether the server lives slows no app down."""

SLICES: Final = "\0slices"
"""Rests for all that is long; no app is named so."""


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

    def has(self, app: str) -> bool:
        """Whether somebody of this app waits."""
        return app in self._lines

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


class Rests:
    """Who lets others go first, and for how long.

    By the clock, where another app was seen a moment ago: its turns wait for disks and agents between any two
    steps, and a pass that comes at once would meet each of them. An app may have a third of the time, and a
    few passes more at once; beyond that it rests. An app that has less never does, whatever others do: one
    that rested after each of its passes took twice as long for a turn beside noise as the noise made it.
    Where there is nobody else, by passes of the loop, which take no time if there is nothing else to do.
    """

    def __init__(self) -> None:
        self._passes: dict[str, int] = {}
        self._until: dict[str, float] = {}
        self._used: OrderedDict[str, tuple[float, float]] = (
            OrderedDict()
        )  # beyond its share, and when that was
        self._seen: OrderedDict[str, float] = OrderedDict()  # the last one at the end

    def see(self, app: str, now: float) -> None:
        self._seen[app] = now
        self._seen.move_to_end(app)
        if len(self._seen) > MOST_SEEN:
            self._seen.popitem(last=False)

    def are_others_about(self, app: str, now: float) -> bool:
        other = next((one for one in reversed(self._seen) if one not in (app, NOBODY)), None)
        return other is not None and now - self._seen[other] < ABOUT_SECS

    def rest(self, who: str, app: str, took: float, now: float) -> None:
        if self.are_others_about(app, now):
            free = 0.0 if who == SLICES else BURST_SECS
            share = _share_of(who)
            beyond = self._note(who, took, now) - free
            if beyond >= share * SHORT_REST_SECS:
                self._until[who] = now + min(MOST_REST_SECS, beyond / share)
        elif passes := min(MOST_PASSES, int(took / PASS_SECS)):
            self._passes[who] = passes

    def charge(self, app: str, took: float, now: float) -> None:
        """What it has had elsewhere of the one interpreter counts as if it had had it in a pass."""
        if self.are_others_about(app, now):
            self.rest(app, app, took, now)

    def _note(self, who: str, took: float, now: float) -> float:
        """What it has used beyond its share: time takes it back, and no more is kept than a rest is for."""
        used, at = self._used.pop(who, (0.0, now))
        share = _share_of(who)
        idle = max(0.0, now - took - at)
        used = max(0.0, used - share * idle) + (1 - share) * took
        used = min(used, BURST_SECS + share * MOST_REST_SECS)
        self._used[who] = (used, now)
        if len(self._used) > MOST_SEEN:
            self._used.popitem(last=False)
        return used

    def who(self, now: float) -> Container[str]:
        if self._until:
            self._until = {who: end for who, end in self._until.items() if end > now}
        return {*self._passes, *self._until}

    def count_pass(self) -> None:
        if self._passes:
            self._passes = {who: left - 1 for who, left in self._passes.items() if left > 1}

    def is_counting(self) -> bool:
        return bool(self._passes)

    def next_end(self, now: float) -> float:
        """After how many seconds somebody may go on."""
        if self._passes or not self._until:
            return 0.0
        return max(0.0, min(self._until.values()) - now)


def _share_of(who: str) -> float:
    return SHARE_OF_NOBODY if who == NOBODY else SHARE


class LoopTurns:
    """Belongs to one event loop. As long as nobody comes it does nothing."""

    def __init__(self) -> None:
        self._crowd = InTurn()
        self._long = InTurn()
        self._app: str | None = None  # whose pass this is
        self._left = 0
        self._is_slicing = False
        self._slow: set[str] = set()
        self._rests = Rests()
        self._handle: asyncio.Handle | None = None
        self._is_soon = False
        self._times = PassTimes()

    async def enter(self, app: str) -> None:
        """Before a short step of something that comes in crowds. Alone it does not even wait a pass."""
        now = self._start(app)
        if self._app is None and not self._is_slicing:
            resting = self._rests.who(now)
            if app not in resting and self._crowd.next_app(resting) is None:
                self._give_pass(app, now)
        if self._app == app and self._left > 0:
            self._left -= 1
            return
        await self._crowd.wait(app)

    async def go_on(self, app: str) -> None:
        """Before a further step of what was let in: it waits for another pass only if its app rests.

        Everybody else has waited once, and would meet the pass of whoever is noisy at each step.
        """
        if app in self._rests.who(self._times.now()):
            await self.enter(app)

    async def slice(self, app: str) -> None:
        """Before each slice of something long. Others always have a pass in between."""
        self._start(app)
        await self._long.wait(app)

    def charge(self, app: str, cpu: float) -> None:
        """An app has computed for so many seconds in a thread: it has so much less of the loop.

        Else it would have a third of the loop, and another one of the interpreter in each such thread.
        """
        self._rests.charge(app, cpu, self._times.now())

    def are_others_about(self, app: str) -> bool:
        """Whether somebody of another app was here a moment ago."""
        return self._rests.are_others_about(app, self._times.now())

    def _start(self, app: str) -> float:
        now = self._times.now()
        self._rests.see(app, now)
        if not self._is_soon:
            self._times.begin()
            self._go_on(0.0)
        return now

    def _go_on(self, secs: float) -> None:
        loop = asyncio.get_running_loop()
        if self._handle is not None:
            self._handle.cancel()
        self._is_soon = not secs
        if secs:
            self._times.pause()
        self._handle = loop.call_soon(self._pass) if self._is_soon else loop.call_later(secs, self._pass)

    def _pass(self) -> None:
        """Runs once in each pass of the loop, after those that were let in by the last one."""
        took = self._times.end() if self._is_soon else self._times.begin()
        now = self._times.now()
        had_crowd = self._app is not None and not self._is_slicing
        if self._app is not None:
            self._judge(self._app, took, now)
        self._app, self._left, self._is_slicing, self._handle = None, 0, False, None
        resting = self._rests.who(now)
        crowd = self._crowd.next_app(resting)
        long = None if SLICES in resting else self._long.next_app()
        if long is not None and (crowd is None or had_crowd):
            self._app, self._is_slicing = long, True
            self._long.let_in(long)
        elif crowd is not None:
            self._give_pass(crowd, now)
            self._left -= self._crowd.let_in(crowd, self._left)
        self._rests.count_pass()
        if self._app is not None:
            self._go_on(0.0)
        elif self._crowd or self._long or self._rests.is_counting():
            self._go_on(self._rests.next_end(now))
        else:
            self._is_soon = False
            self._times.pause()

    def _give_pass(self, app: str, now: float) -> None:
        few = app in self._slow or self._rests.are_others_about(app, now)
        self._app, self._left = app, 1 if few else MANY

    def _judge(self, app: str, took: float, now: float) -> None:
        is_long = took > LONG_PASS_SECS
        if self._is_slicing:
            self._rests.rest(SLICES, app, took, now)
            self._rests.charge(app, took, now)
        elif is_long:
            self._slow.add(app)
        else:
            self._slow.discard(app)
        if not self._is_slicing and (is_long or self._rests.are_others_about(app, now)):
            self._rests.rest(app, app, took, now)
