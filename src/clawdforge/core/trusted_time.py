"""The time for decisions that cannot be taken back: a clock that somebody sets does not hurry them."""

import logging
from typing import Final

from clawdforge.core.clock import SECOND, Clock
from clawdforge.wire.base import Micros

log = logging.getLogger(__name__)
SLACK: Final = 60 * SECOND
"""By so much a clock may run away before it counts as set."""
SETTLED: Final = 3600 * SECOND
"""A clock that was set ahead is believed once it has stayed there for so long."""


class TrustedTime:
    """Follows the wall clock, but is never ahead of what has passed by a clock that nobody can set.

    A wall clock that was set back is followed at once: then everything looks younger, and stays.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wall, self._steady = clock.now(), clock.steady()
        self._ahead_since: Micros | None = None

    def now(self) -> Micros:
        wall, steady = self._clock.now(), self._clock.steady()
        passed = self._wall + steady - self._steady
        if abs(wall - passed) <= SLACK:
            self._follow(wall, steady)
            return min(wall, passed)
        if wall < passed:
            log.warning("the clock was set back by %d s", (passed - wall) // SECOND)
            self._follow(wall, steady)
            return wall
        if self._ahead_since is None:
            self._ahead_since = steady
            log.warning(
                "the clock was set ahead by %d s; sessions do not age by it yet", (wall - passed) // SECOND
            )
        if steady - self._ahead_since >= SETTLED:
            self._follow(wall, steady)
            return wall
        return passed

    def _follow(self, wall: Micros, steady: Micros) -> None:
        self._wall, self._steady, self._ahead_since = wall, steady, None
