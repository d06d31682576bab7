"""Wakes the one task that listens when the first of several things happens, or when its time is up.

Whatever can happen rings it, so that none of them needs a task that waits for it.
"""

import asyncio

from clawdforge.core.running.late_calls import LateCalls


class Bell:
    """Belongs to one event loop. Who listens after it has rung does not wait."""

    def __init__(self, late_calls: LateCalls | None = None) -> None:
        """With `late_calls`, a time that is hardly ever up costs no timer of its own."""
        self._late_calls = late_calls
        self._has_rung = False
        self._listening: asyncio.Future[None] | None = None

    @property
    def has_rung(self) -> bool:
        return self._has_rung

    def ring(self) -> None:
        self._has_rung = True
        self._wake()

    async def listen(self, within: float) -> bool:
        """Returns when it has rung, or after so many seconds: whether it has rung. One listens at a time."""
        if self._has_rung:
            return True
        if self._listening is not None and not self._listening.done():
            raise RuntimeError("somebody listens already, and would never be woken")
        loop = asyncio.get_running_loop()
        self._listening = loop.create_future()
        late = (self._late_calls or loop).call_later(within, self._wake)
        try:
            await self._listening
        finally:
            late.cancel()
        return self._has_rung

    def _wake(self) -> None:
        if self._listening is not None and not self._listening.done():
            self._listening.set_result(None)
