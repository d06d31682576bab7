"""How many processes of an app are being started at a time: two, while others are about.

A start takes the kernel and a processor for tens of milliseconds, none of them on the event loop: whoever
starts eight at once makes everybody's process wait, however fair the loop is.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from clawdforge.core.pacing.loop_turns import InTurn

MOST: Final = 2


class FewStarts:
    """Belongs to one event loop. Whoever waits has one line for each app, in the order of coming."""

    def __init__(self) -> None:
        self._busy: dict[str, int] = {}
        self._waiting = InTurn()

    @asynccontextmanager
    async def place(self, app: str, are_others_about: Callable[[str], bool]) -> AsyncIterator[None]:
        if self._busy.get(app, 0) >= MOST and are_others_about(app):
            await self._waiting.wait(app, partial(self._leave, app))  # whoever lets it in leaves it its place
        else:
            self._busy[app] = self._busy.get(app, 0) + 1
        try:
            yield
        finally:
            self._leave(app)

    def _leave(self, app: str) -> None:
        while self._waiting.has(app):
            if self._waiting.let_in(app):
                return
        self._busy[app] -= 1
        if not self._busy[app]:
            del self._busy[app]
