"""Long changes as a series of short writes with a rest after each, so that others write in between."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from clawdforge.core.ports import Store, Tx

T = TypeVar("T")


class LongWrite:
    """One long change of one app: each step is a write of its own.

    Before the next one it rests as long as the last one took. So it needs at most half of the writer's time,
    and of the processor's, even where nobody waits at the moment: whoever comes next may come at any moment.
    """

    def __init__(self, store: Store, app: str) -> None:
        self._store = store
        self._app = app
        self._took = 0.0

    async def step(self, work: Callable[[Tx], T]) -> T:
        await self.rest()
        clock = asyncio.get_running_loop().time
        begun = clock()
        try:
            return await self._store.write_slice(self._app, work)
        finally:
            self._took = clock() - begun

    async def repeat(self, work: Callable[[Tx], bool]) -> None:
        """Until it says that all is done."""
        while not await self.step(work):
            pass

    async def rest(self) -> None:
        took, self._took = self._took, 0.0
        if took:
            await asyncio.sleep(took)
