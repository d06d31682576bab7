"""A turn under way, and all that it carries from its start to its end."""

import asyncio
from dataclasses import dataclass, field

from clawdforge.core.model import SessionRow
from clawdforge.core.rules.turns import Started
from clawdforge.core.running.pool import Seat
from clawdforge.core.running.recorder import TurnRecorder
from clawdforge.wire.turn import Outcome


@dataclass(eq=False, slots=True)
class Stop:
    """Somebody's wish that a turn ends, and the moment it has. The first who asks is heard."""

    asked: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    outcome: Outcome = Outcome.CANCELLED
    reason: str = "cancelled"
    rollback: bool = False

    def ask_for(self, outcome: Outcome, reason: str, *, rollback: bool = False) -> None:
        if not self.asked.is_set():
            self.outcome, self.reason, self.rollback = outcome, reason, rollback
            self.asked.set()


@dataclass(frozen=True, eq=False, slots=True)
class RunningTurn:
    """What was started, the seat of the agent that answers it, who may stop it, and who writes it down."""

    started: Started
    seat: Seat
    stop: Stop
    recorder: TurnRecorder

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
