"""Whether the machine had time for what was measured."""

import asyncio
import os
from contextlib import suppress
from typing import Final

EVERY_SECS: Final = 0.05
LATE_SECS: Final = 0.2


class Pulse:
    """Beats in this process. When a beat comes late, so does everything else."""

    def __init__(self) -> None:
        self._late_at = 0.0
        self._task = asyncio.create_task(self._beat(), name="pulse")

    def was_calm(self, since: float) -> bool:
        """Since this time of the loop. Half of the load that is allowed is this proof's own."""
        return self._late_at < since and os.getloadavg()[0] < 2 * (os.cpu_count() or 1)

    async def close(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            wanted = loop.time() + EVERY_SECS
            await asyncio.sleep(EVERY_SECS)
            if loop.time() - wanted > LATE_SECS:
                self._late_at = loop.time()
