"""Lets those who wait for a turn's answer have it before the home is copied, and tells them how it ended.

Copying is CPU-heavy for some milliseconds, and only the next prompt waits for it.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from clawdforge.core.models.rows import TurnRow
from clawdforge.core.running.bell import Bell

PASSES: Final = 2
"""Of the event loop: by then nearly everybody has the answer, and all of it is sent. That saves a timer."""


@dataclass(eq=False, slots=True)
class Due:
    """The answers to one turn."""

    waiting: int = 0
    given: Bell = field(default_factory=Bell)  # nobody waits for it any more
    noted: asyncio.Event = field(default_factory=asyncio.Event)  # this server has run it and is done
    ended: TurnRow | None = None


class Answers:
    """The answers that are due, by session and turn."""

    def __init__(self) -> None:
        self._due: dict[tuple[str, int], Due] = {}

    @contextmanager
    def expect(self, session_id: str, turn_index: int) -> Iterator[None]:
        """Mark that somebody waits for the answer; they have it when the block ends."""
        due = self._due.setdefault((session_id, turn_index), Due())
        due.waiting += 1
        try:
            yield
        finally:
            due.waiting -= 1
            if not due.waiting:
                self._due.pop((session_id, turn_index), None)
                due.given.ring()

    def note_end(self, session_id: str, turn_index: int, ended: TurnRow | None) -> None:
        """The turn no longer runs here. How it ended is on stable storage; without it, nobody here knows."""
        due = self._due.get((session_id, turn_index))
        if due is not None and not due.noted.is_set():
            due.ended = ended
            due.noted.set()

    async def find_end(self, session_id: str, turn_index: int, *, runs_here: bool) -> TurnRow | None:
        """How the turn ended, for who expects its answer; None where that has to be looked up.

        Readers hear of an end a moment before its worker does: while it `runs_here` that is waited for.
        """
        due = self._due.get((session_id, turn_index))
        if due is None:
            return None
        if runs_here:
            await due.noted.wait()
        return due.ended

    async def wait_until_given(self, session_id: str, turn_index: int, within: float) -> None:
        """Wait until all who expect the answer have it, but at most `within` seconds: some read slowly."""
        due = self._due.get((session_id, turn_index))
        if due is None:
            return
        for _ in range(PASSES):
            await asyncio.sleep(0)
        if not due.given.has_rung:
            await due.given.listen(within)
