"""How often a turn called its model, as its events show it."""

from dataclasses import dataclass, field
from typing import Final

from clawdforge.wire.event import Event
from clawdforge.wire.event_forms import update_of
from clawdforge.wire.message import CALL_ID

OVER: Final = frozenset({"completed", "failed", "cancelled"})


@dataclass(slots=True)
class Steps:
    """How often the events show that the model was called: once, and again after each round of tools."""

    count: int = 1
    _open: set[str] = field(default_factory=set)
    _returned: bool = False

    def take(self, event: Event) -> None:
        if event.type in ("text", "thinking", "tool_call") and self._returned and not self._open:
            self.count += 1
            self._returned = False
        if event.type in ("tool_call", "tool_update"):
            update = update_of(event.type, event.model_dump())
            call = str(update.get(CALL_ID))
            if str(update.get("status")) in OVER:
                self._open.discard(call)
                self._returned = True
            elif event.type == "tool_call":
                self._open.add(call)
