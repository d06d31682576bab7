"""Wakes the one task that listens when the first of several things happens, or when its time is up.

Whatever can happen rings it, so that none of them needs a task that waits for it.
"""

import asyncio


class Bell:
    """Rings once. Belongs to one event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._rung = self._loop.create_future()

    def ring(self, *_about: object) -> None:
        if not self._rung.done():
            self._rung.set_result(None)

    async def listen(self, within: float) -> None:
        """Returns when it has rung, or after so many seconds."""
        if self._rung.done():
            return
        late = self._loop.call_later(within, self.ring)
        try:
            await self._rung
        finally:
            late.cancel()
