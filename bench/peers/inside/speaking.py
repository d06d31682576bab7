"""What an agent in a peer's process says: `echo TEXT`, `sleep SECS`, `chunks N`, `stamps N MS`.

It runs where only the peer's packages are.
"""

import asyncio
import time
from collections.abc import AsyncIterator


async def speak(prompt: str) -> AsyncIterator[str]:
    """Chunks as the scripted agent has them. A stamp is when it was written, by the machine's clock."""
    word, _, rest = prompt.partition(" ")
    if word == "sleep":
        await asyncio.sleep(float(rest))
        yield "done"
    elif word == "chunks":
        for number in range(1, int(rest) + 1):
            yield f"{number} "
    elif word == "stamps":
        count, pause = rest.split()
        for _ in range(int(count)):
            await asyncio.sleep(int(pause) / 1000)
            yield f"<{time.monotonic_ns()}>"
    else:
        yield rest
