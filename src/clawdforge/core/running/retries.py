"""When a prompt that nobody has begun to answer is given to an agent again, in the same turn."""

from typing import Final

from clawdforge.wire.errors import AgentError, AgentLost

FIRST_WAIT_SECS: Final = 2.0
LONGEST_WAIT_SECS: Final = 60.0
"""Where a provider asks for more, the turn fails and says so: its caller may want to do something else."""


class Retries:
    """Those of one turn. What was heard is never said again: it may have been done already."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._wait = FIRST_WAIT_SECS
        self._was_lost = False

    def find_wait(self, failure: AgentError) -> float | None:
        """Seconds until the next attempt; None where there is none."""
        if failure.extra.get("heard") is not False:
            return None
        if isinstance(failure, AgentLost):  # another process will know the session; but only one is tried
            is_first, self._was_lost = not self._was_lost, True
            return 0.0 if is_first else None
        if not failure.waiting_helps or self._left <= 0:
            return None
        wait = self._wait if failure.retry_after is None else failure.retry_after
        self._left -= 1
        self._wait *= 2
        return wait if wait <= LONGEST_WAIT_SECS else None
