"""When a call is tried again, and how long to wait before it: a policy without I/O."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from clawdforge.wire.errors import BY_CODE

PASSING_STATUSES: Final = frozenset({408, 429, 503})
"""Answers that may change when the call is repeated, where no error code says more."""

LONGEST_WAIT_SECS: Final = 60.0
"""A server that asks for a longer pause gets none: its refusal is handed to the caller."""


@dataclass(frozen=True, slots=True)
class Retry:
    """`retries` more attempts after the first; the pause doubles from `first_secs` up to `most_secs`."""

    retries: int = 2
    first_secs: float = 0.25
    most_secs: float = 8.0
    jitter: Callable[[], float] = random.random

    def after_answer(
        self, attempt: int, status: int, *, safe: bool, code: str = "", retry_after: str | None = None
    ) -> float | None:
        """Seconds to wait before the next attempt, or None not to repeat it. `attempt` is from 0."""
        known = BY_CODE.get(code)
        passing = known.is_passing if known is not None else status in PASSING_STATUSES
        if not (safe and passing and attempt < self.retries):
            return None
        asked = seconds(retry_after)
        if asked is None:
            return self.pause(attempt)
        return max(asked, self.pause(attempt)) if asked <= LONGEST_WAIT_SECS else None

    def after_failure(self, attempt: int, *, sent: bool, safe: bool) -> float | None:
        """The same after a connection that failed. What was never sent can always be sent again."""
        if attempt >= self.retries or (sent and not safe):
            return None
        return self.pause(attempt)

    def pause(self, attempt: int) -> float:
        """Grows with each attempt; a quarter of it is random, so that callers do not retry in step."""
        whole = min(self.most_secs, self.first_secs * 2.0 ** min(attempt, 30))
        return whole * (1 - 0.25 * self.jitter())


def seconds(retry_after: str | None) -> float | None:
    """`Retry-After` in seconds; its other form, a date, is ignored because clocks differ."""
    try:
        asked = float(retry_after or "")
    except ValueError:
        return None
    return asked if 0 <= asked < float("inf") else None
