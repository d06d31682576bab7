"""What one node does for all, as long as it has that duty."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Duty:
    """Whether this node has it is said by its `Membership`."""

    def __init__(self, *, is_on: bool) -> None:
        self._on = asyncio.Event()
        self._off = asyncio.Event()
        self.set(is_on=is_on)

    @property
    def is_on(self) -> bool:
        return self._on.is_set()

    def set(self, *, is_on: bool) -> None:
        (self._on, self._off)[not is_on].set()
        (self._on, self._off)[is_on].clear()

    async def do(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do what one node does for all, whenever that is this one. Ends when the work does."""
        while True:
            await self._on.wait()
            doing = asyncio.ensure_future(work())
            leaving = asyncio.ensure_future(self._off.wait())
            try:
                await asyncio.wait({doing, leaving}, return_when=asyncio.FIRST_COMPLETED)
                if doing.done():
                    return doing.result()
            finally:
                leaving.cancel()
                doing.cancel()
                await asyncio.wait({doing})
