"""How long the passes of an event loop took, without what its thread waited for in them.

On a busy machine a pass of a millisecond may take fifty: its thread waits for a processor, or for a thread
that computes. Whose pass it was has had a millisecond of the loop, and whoever is to have a third of the time
has a third of what the loop had. By the clock on the wall, an app of a few short requests rested for what its
neighbours' agents did to the machine: 110 times in a hundred seconds, up to 50 ms each time.
"""

import asyncio
import time


class PassTimes:
    """Belongs to one event loop."""

    def __init__(self) -> None:
        self._lost = 0.0
        self._begun = 0.0
        self._cpu = 0.0
        self._is_running = False

    def now(self) -> float:
        """A clock that stands while the loop would run and does not, also in the middle of a pass."""
        now = asyncio.get_running_loop().time()
        waited = now - self._begun - (time.thread_time() - self._cpu) if self._is_running else 0.0
        return now - self._lost - max(0.0, waited)

    def begin(self) -> float:
        """A pass begins. What went by until now was nobody's: no time."""
        self._begun, self._cpu = asyncio.get_running_loop().time(), time.thread_time()
        self._is_running = True
        return 0.0

    def pause(self) -> None:
        """No pass follows this one at once: the loop may sleep."""
        self._is_running = False

    def end(self) -> float:
        """What was computed since the beginning, in which the loop had no time to sleep. The next begins."""
        begun, cpu = self._begun, self._cpu
        self.begin()
        whole = self._begun - begun
        took = min(whole, self._cpu - cpu)
        self._lost += whole - took
        return took
