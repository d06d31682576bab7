"""When the copies of a home are written to the disk: those of a second together, unless somebody waits."""

import asyncio
import contextlib
from typing import Final

SYNC_SECS: Final = 1.0


class Saving:
    """Waits for a second before copies are written to the disk, unless somebody is in a hurry."""

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        self._hurried = asyncio.Event()

    def hurry(self) -> None:
        self._hurried.set()

    async def wait(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SYNC_SECS):
                await self._hurried.wait()
