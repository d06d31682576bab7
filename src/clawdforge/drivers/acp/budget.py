"""How much memory the answers to one agent may take: those that it has not read yet, all together."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

MAX_BYTES: Final = 16 * 1024 * 1024
MAX_WORKERS: Final = 2


class AnswerBudget:
    """Whoever answers takes what the answer needs before it is made, in the order of the requests.

    An agent that asks for much and reads nothing waits for itself. An answer that is larger than all of the
    budget is given alone.
    """

    def __init__(self, most: int = MAX_BYTES) -> None:
        self.waiting = 0
        self._most = most
        self._taken = 0
        self._turn = asyncio.Lock()
        self._room = asyncio.Event()
        self._workers = asyncio.Semaphore(MAX_WORKERS)

    async def take(self, size: int) -> None:
        """Returns when there is room. It is given back when the task that gives the answer has ended."""
        self.waiting += 1
        try:
            async with self._turn:
                while self._taken and self._taken + size > self._most:
                    self._room.clear()
                    await self._room.wait()
                self._taken += size
        finally:
            self.waiting -= 1
        task = asyncio.current_task()
        if task is not None:
            task.add_done_callback(lambda _: self._give_back(size))

    @asynccontextmanager
    async def work(self) -> AsyncIterator[None]:
        """A place for work in a thread. Threads are everybody's, so one agent has few of them at a time."""
        async with self._workers:
            yield

    def _give_back(self, size: int) -> None:
        self._taken -= size
        self._room.set()
