"""Where the time comes from: one clock that may be set, and one that only goes on. In microseconds."""

import time
from typing import Final, Protocol

from clawdforge.wire.base import Micros

SECOND: Final = 1_000_000


class Clock(Protocol):
    """Where the time comes from, so that tests can move it."""

    def now(self) -> Micros:
        """Microseconds since the epoch."""

    def steady(self) -> Micros:
        """Microseconds since some moment. Nobody can set it, and it goes on while the machine sleeps."""


class SystemClock:
    def now(self) -> Micros:
        return time.time_ns() // 1000

    def steady(self) -> Micros:
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000
