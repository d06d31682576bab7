"""A running turn and everything that belongs to it from start to end."""

import asyncio
from dataclasses import dataclass, field

from clawdforge.core.model import SessionRow
from clawdforge.core.rules.turns import StartedTurn
from clawdforge.core.running.pool import Seat
from clawdforge.core.running.progress import Progress
from clawdforge.core.running.recorder import TurnRecorder
from clawdforge.wire.turn import Outcome


@dataclass(eq=False, slots=True)
class Stop:
    """A request to stop a turn, and the signal that it has ended, with how. Only the first request counts."""

    requested: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    hurried: asyncio.Event = field(default_factory=asyncio.Event)  # the agent has had time enough
    outcome: Outcome = Outcome.CANCELLED
    reason: str = "cancelled"
    rollback: bool = False
    ended_as: Outcome | None = None

    def request(self, outcome: Outcome, reason: str, *, rollback: bool = False) -> bool:
        """Whether this request is the one that counts."""
        if self.requested.is_set():
            return False
        self.outcome, self.reason, self.rollback = outcome, reason, rollback
        self.requested.set()
        return True


@dataclass(frozen=True, eq=False, slots=True)
class RunningTurn:
    """The turn that was started, its agent's seat in the pool, and what goes on with it."""

    started: StartedTurn
    seat: Seat
    stop: Stop
    recorder: TurnRecorder
    progress: Progress

    @property
    def app(self) -> str:
        return self.seat.app

    @property
    def session(self) -> SessionRow:
        """As it was when the turn began."""
        return self.started.session

    @property
    def session_id(self) -> str:
        return self.seat.session_id

    @property
    def index(self) -> int:
        return self.started.turn.turn_index
