"""One sync of a file system for everybody who waits for one, with a rest in between.

It writes all that anybody has written there, so it costs the same for one session as for fifty; and while it
runs, the commits of the database wait for the same disk.
"""

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Final

REST_SECS: Final = 0.5


class SharedSync:
    """Belongs to one event loop."""

    def __init__(self, threads: Executor) -> None:
        self._threads = threads
        self._next: asyncio.Task[None] | None = None  # has not begun: it will write what is there now
        self._last: asyncio.Task[None] | None = None
        self._hurried = asyncio.Event()

    async def sync(self, work: Callable[[], None]) -> None:
        """Return when all that was written before this call is on stable storage. Raises OSError.

        The work is that of whoever came first: all that wait have the same.
        """
        if self._next is None:
            self._next = asyncio.create_task(self._run(work, self._last), name="sync of copies")
            self._next.add_done_callback(_take_failure)
        await asyncio.shield(self._next)

    def hurry(self) -> None:
        """Somebody waits for it: there is no rest before the next one."""
        self._hurried.set()

    async def _run(self, work: Callable[[], None], last: asyncio.Task[None] | None) -> None:
        if last is not None:
            await asyncio.wait([last])
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(REST_SECS):
                    await self._hurried.wait()
        self._hurried.clear()
        self._last, self._next = self._next, None
        await asyncio.get_running_loop().run_in_executor(self._threads, work)


def _take_failure(task: asyncio.Task[None]) -> None:
    """Those who wait are told of it; if none is left, nobody has to be."""
    if not task.cancelled():
        task.exception()
