"""The lock of one session's home: who changes it, who waits for that, and threads that outlast a cancel."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from types import TracebackType
from typing import TypeVar

T = TypeVar("T")


class HomeLock:
    """A lock that knows whether anybody holds it or waits for it.

    asyncio's own lock is free for a moment after it is released, though somebody was promised it. Whoever
    took that for free and waited would wait for one who may be waiting for it.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._users = 0

    @property
    def is_free(self) -> bool:
        """Nobody holds it and nobody waits: whoever takes it now has it at once."""
        return self._users == 0

    async def __aenter__(self) -> None:
        self._users += 1
        try:
            await self._lock.acquire()
        except BaseException:
            self._users -= 1
            raise

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._users -= 1
        self._lock.release()


async def run_to_end(
    work: Callable[[], T], stop: threading.Event | None = None, threads: Executor | None = None
) -> T:
    """Run work in a thread. However often it is cancelled, it returns only when the thread has ended.

    So a lock that is held meanwhile is never given on while the thread still works in the folder.
    A cancel sets `stop`, which tells the thread to end early. `threads` are those to use, else everybody's.
    """
    ended = asyncio.Event()
    running = _begin(work, threads, ended)
    cancelled: asyncio.CancelledError | None = None
    while not ended.is_set():
        try:
            await ended.wait()
        except asyncio.CancelledError as error:
            cancelled = error
            if stop is not None:
                stop.set()
    if cancelled is not None:
        running.exception()  # marks it as seen; the cancel is what counts
        raise cancelled
    return running.result()


def _begin(
    work: Callable[[], T], threads: Executor | None, ended: asyncio.Event
) -> asyncio.Future[T] | Future[T]:
    """Threads of our own set the event themselves: a future of the loop between takes two more passes."""
    loop = asyncio.get_running_loop()
    if threads is None:
        shared = loop.run_in_executor(None, work)
        shared.add_done_callback(lambda _: ended.set())
        return shared
    own = threads.submit(work)
    own.add_done_callback(lambda _: _tell(loop, ended))
    return own


def _tell(loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody waits any more
        loop.call_soon_threadsafe(ended.set)
