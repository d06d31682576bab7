"""Who waits for the answer of a turn: the copy that is made after the turn lets them have it first.

Copying takes the processor for some milliseconds, and nobody waits for it but the next prompt.
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
        """Somebody waits for the answer inside of this, and has it after."""
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
        """Wait for those who expect one now, but no longer than so many seconds: some read slowly."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                for given in list(self._due.get((session_id, turn_index), ())):
                    await given.wait()
