"""How apps share one interpreter: turns on the event loop, and turns in the thread that computes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from clawdforge.core.computing import Computing
from clawdforge.core.loop_turns import LoopTurns

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Pace:
    """One for a server: what requests, streams and agents of an app do is one app's doing."""

    turns: LoopTurns = field(default_factory=LoopTurns)
    computing: Computing = field(default_factory=Computing)

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

    async def compute(self, work: Callable[[], Result]) -> Result:
        return await self.pace.computing.run(self.app, work)
