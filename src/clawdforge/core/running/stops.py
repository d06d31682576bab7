"""What stops a running turn: somebody's request, a limit that it crosses, or a full share of the disk."""

import asyncio
from dataclasses import dataclass, field

from clawdforge.core.models.agents import Used
from clawdforge.core.rules.limits import (
    BUDGET,
    NO_ROOM,
    describe_crossing,
    find_crossed,
    read_limits,
    used_by,
)
from clawdforge.core.running.bell import Bell
from clawdforge.wire.base import Json
from clawdforge.wire.turn import Outcome


@dataclass(eq=False, slots=True)
class Stop:
    """A request to stop a turn, and the signal that it has ended, with how. Only the first request counts.

    `limit` is the name of the limit that asked for it, if one did.
    """

    requested: asyncio.Event = field(default_factory=asyncio.Event)
    bell: Bell | None = None  # of whoever looks after the turn at the moment
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    hurried: asyncio.Event = field(default_factory=asyncio.Event)  # the agent has had time enough
    outcome: Outcome = Outcome.CANCELLED
    reason: str = "cancelled"
    rollback: bool = False
    limit: str | None = None
    ended_as: Outcome | None = None

    def request(
        self, outcome: Outcome, reason: str, *, rollback: bool = False, limit: str | None = None
    ) -> bool:
        """Whether this request is the one that counts. To take the turn back is heeded even if it is not."""
        if self.requested.is_set():
            self.rollback = self.rollback or rollback
            return False
        self.outcome, self.reason, self.rollback, self.limit = outcome, reason, rollback, limit
        self.requested.set()
        if self.bell is not None:
            self.bell.ring()
        return True


class LimitWatch:
    """Compares what a turn uses with the limits that it carries, and asks for its stop beyond them."""

    def __init__(self, limits: Json, stop: Stop) -> None:
        self._limits = read_limits(limits)
        self._stop = stop
        self._tool_calls = 0

    @property
    def seconds(self) -> float | None:
        """How long the turn may run."""
        return self._limits.get("max_seconds")

    def note(self, used: Used) -> None:
        """What the turn has used so far, as far as the agent tells before it is done."""
        self._tool_calls = max(self._tool_calls, used.tool_calls)
        crossed = find_crossed(self._limits, used)
        if crossed is not None:
            self._cross(*crossed)

    def judge(self, usage: Json | None) -> None:
        """What the agent reported with its answer: for many agents it is the first word about that."""
        self.note(used_by(usage, self._tool_calls))

    def end_time(self, seconds: float) -> None:
        self._cross("max_seconds", seconds)

    def end_budget(self, reason: str) -> None:
        """A budget, which is no limit of the turn's own, is crossed or was not opened for it."""
        self._stop.request(Outcome.CANCELLED, reason, limit=BUDGET)

    def end_space(self) -> None:
        """The app may store no more, whichever of its turns filled its share."""
        self._stop.request(Outcome.CANCELLED, NO_ROOM, limit="max_bytes")

    def _cross(self, name: str, amount: float) -> None:
        reason = describe_crossing(name, self._limits[name], amount)
        self._stop.request(Outcome.CANCELLED, reason, limit=name)
