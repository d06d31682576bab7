"""A running turn and everything that belongs to it from start to end."""

from dataclasses import dataclass

from clawdforge.core.models.rows import SessionRow
from clawdforge.core.rules.turns import StartedTurn
from clawdforge.core.running.pool import Seat
from clawdforge.core.running.progress import Progress
from clawdforge.core.running.recorder import TurnRecorder
from clawdforge.core.running.stops import LimitWatch, Stop


@dataclass(frozen=True, eq=False, slots=True)
class RunningTurn:
    """The turn that was started, its agent's seat in the pool, and what goes on with it."""

    started: StartedTurn
    seat: Seat
    stop: Stop
    watch: LimitWatch
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
