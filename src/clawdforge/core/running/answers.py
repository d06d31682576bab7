"""Lets the callers who wait for a turn's answer have it before the home is copied.

Copying is CPU-heavy for some milliseconds, and only the next prompt waits for it.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Answers:
    """The answers that are due, by session and turn."""

    def __init__(self) -> None:
        self._due: dict[tuple[str, int], set[asyncio.Event]] = {}

    @contextmanager
    def expect(self, session_id: str, turn_index: int) -> Iterator[None]:
        """Mark that somebody waits for the answer; they have it when the block ends."""
        due = self._due.setdefault((session_id, turn_index), set())
        given = asyncio.Event()
        due.add(given)
        try:
            yield
        finally:
            given.set()
            due.discard(given)
            if not due:
                self._due.pop((session_id, turn_index), None)

    async def wait_until_given(self, session_id: str, turn_index: int, within: float) -> None:
        """Wait until all who expect the answer have it, but at most `within` seconds: some read slowly."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                for given in list(self._due.get((session_id, turn_index), ())):
                    await given.wait()
