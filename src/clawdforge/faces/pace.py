"""The pace of a program with nothing else to do: a connection need not wait for others."""

import asyncio
from collections.abc import Callable
from typing import Any


class Alone:
    async def enter(self) -> None:
        """Go on."""

    async def compute(self, work: Callable[[], Any], /) -> Any:
        return await asyncio.to_thread(work)
