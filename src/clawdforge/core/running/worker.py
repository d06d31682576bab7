"""What is done in one session at the moment, and what whoever does it leaves to the next."""

import asyncio
from dataclasses import dataclass, field
from typing import NamedTuple

from clawdforge.core.models.rows import TurnRow
from clawdforge.core.running.progress import Progress
from clawdforge.core.running.stops import Stop
from clawdforge.wire.turn import Outcome


class Attended(NamedTuple):
    """A turn that has ended here; `is_last` says that nothing waited behind it in its session then."""

    turn: TurnRow
    is_last: bool = False

    @property
    def completed(self) -> TurnRow | None:
        """The turn, if the agent ended it: another end may be followed by a cut of it, or a deletion."""
        return self.turn if self.turn.outcome is Outcome.COMPLETED and not self.turn.cut else None


@dataclass(eq=False)
class Worker:
    """What is done in one session at the moment."""

    app: str
    session_id: str
    task: asyncio.Task[None] | None = None
    stop: Stop | None = None
    running: int | None = None  # the turn that runs
    last_turn: int | None = None  # the turn that runs, or ran last and is being copied
    has_failed: bool = False  # the turn that ran last
    look_again: bool = False  # somebody thinks that there is something to run
    was_last: bool = False  # nothing waited when the turn that ran last ended
    stands_aside: bool = False  # its turn has no agent and waits until files of its folder are put back
    start_in_doubt: bool = False  # a turn may have been started in a commit whose outcome is unknown
    without_end: int | None = None  # a turn that ran here, and whose end could not be written
    progress: Progress = field(default_factory=Progress)
    boundary: asyncio.Event = field(default_factory=asyncio.Event)  # the next turn runs, or it is gone

    @property
    def is_copying(self) -> bool:
        """Whether its turn has ended and home and workspace are being copied."""
        return self.running is None and self.last_turn is not None

    def begin(self, turn_index: int) -> None:
        """From here on the turn can be stopped, and nobody needs to wait for the copy before it."""
        self.boundary.set()
        self.boundary = asyncio.Event()
        self.running = self.last_turn = turn_index
        self.stop = Stop()

    def end(self, attended: Attended | None) -> None:
        """The turn is over; without anything, nothing of that is written."""
        outcome = None if attended is None else attended.turn.outcome
        self.was_last = attended is not None and attended.is_last
        self.has_failed = outcome is Outcome.FAILED
        self.without_end = self.running if outcome is None else None
        stop, self.stop, self.running = self.stop, None, None
        if stop is not None:
            stop.ended_as = outcome
            stop.ended.set()

    def take_over(self, before: "Worker") -> None:
        """Look after what another one leaves. Whoever waits for that one finds us instead."""
        self.start_in_doubt = self.start_in_doubt or before.start_in_doubt
        if before.without_end is not None:
            self.without_end = before.without_end
        before.boundary.set()
