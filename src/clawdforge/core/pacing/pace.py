"""How apps share one interpreter: turns on the event loop, and turns in the thread that computes."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TypeVar

from clawdforge.core.pacing.computing import Computing
from clawdforge.core.pacing.few_starts import FewStarts
from clawdforge.core.pacing.loop_turns import LoopTurns

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Pace:
    """One for a server: what requests, streams and agents of an app do is one app's doing."""

    turns: LoopTurns = field(default_factory=LoopTurns)
    computing: Computing = field(default_factory=Computing)
    starts: FewStarts = field(default_factory=FewStarts)

    def __post_init__(self) -> None:
        self.computing.charge_to(self.turns.charge)

    def of(self, app: str) -> "AppPace":
        return AppPace(self, app)


@dataclass(frozen=True, slots=True)
class AppPace:
    """The same, for one app."""

    pace: Pace
    app: str

    async def enter(self) -> None:
        """Before a short step."""
        await self.pace.turns.enter(self.app)

    def start(self) -> AbstractAsyncContextManager[None]:
        """Around the start of a process, which keeps the whole machine busy."""
        return self.pace.starts.place(self.app, self.pace.turns.are_others_about)

    async def compute(self, work: Callable[[], Result]) -> Result:
        return await self.pace.computing.run(self.app, work)
