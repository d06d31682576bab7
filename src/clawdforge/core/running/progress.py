"""What the work of a session waits for, and since when: so that a session that stands still can be found."""

import asyncio
from dataclasses import dataclass, field

from clawdforge.wire.admin import WaitsFor


def _now() -> float:
    return asyncio.get_running_loop().time()


@dataclass(eq=False, slots=True)
class Progress:
    """Times are those of the event loop's clock, which nobody can set."""

    waits_for: WaitsFor = WaitsFor.PLACE
    since: float = field(default_factory=_now)

    def wait_for(self, what: WaitsFor) -> None:
        """From now on this is waited for. Said again, it means that there was progress."""
        self.waits_for, self.since = what, _now()


@dataclass(frozen=True, slots=True)
class Waiting:
    """A session whose work has waited for the same thing for some time."""

    app: str
    session_id: str
    turn: int | None
    waits_for: WaitsFor
    secs: float
