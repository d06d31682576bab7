"""When a server that was started for somebody has nothing more to do."""

import asyncio
from collections.abc import Callable
from typing import Final

LOOKS: Final = 20
"""How often one idle time is looked at: it is kept to a twentieth."""


async def until_idle(secs: float, requests: Callable[[], int], busy: Callable[[], bool]) -> None:
    """Return after `secs` in which no request came and nothing was `busy`. `requests` counts all so far."""
    loop = asyncio.get_running_loop()
    since, seen = loop.time(), requests()
    while loop.time() - since < secs:
        await asyncio.sleep(min(1.0, secs / LOOKS))
        if busy() or requests() != seen:
            since, seen = loop.time(), requests()
