"""Work in a task of its own, which is made when there is something to do: many turns never have anything."""

import asyncio
from collections.abc import Awaitable, Callable


class WhenNeeded:
    """Does its work again whenever it is told that there is some. Belongs to one event loop."""

    def __init__(
        self,
        work: Callable[[], Awaitable[None]],
        is_needed: Callable[[], bool],
        on_end: Callable[[], None],
        name: str,
    ) -> None:
        """`is_needed` is asked a moment after the first word of work: that may be nobody's by then."""
        self._work = work
        self._is_needed = is_needed
        self._on_end = on_end
        self._name = name
        self._task: asyncio.Task[None] | None = None
        self._noted = asyncio.Event()
        self._is_to_look = self._is_idle = self._is_ending = False

    @property
    def failure(self) -> BaseException | None:
        """What the work raised. It is not done again after that."""
        task = self._task
        return task.exception() if task is not None and task.done() and not task.cancelled() else None

    def note(self) -> None:
        """There may be something to do."""
        self._noted.set()
        if self._task is None and not self._is_to_look:
            self._is_to_look = True
            asyncio.get_running_loop().call_soon(self._look)

    async def end(self) -> None:
        """Do nothing more, and return when what is being done is done, or has failed."""
        self._is_ending = True
        if self._task is not None and self._is_idle:
            self._task.cancel()
        elif self._task is not None:
            await asyncio.wait({self._task})
            if not self._task.cancelled():
                self._task.exception()  # marks it as seen

    def cancel(self) -> None:
        self._is_ending = True
        if self._task is not None:
            self._task.cancel()

    def _look(self) -> None:
        self._is_to_look = False
        if not self._is_ending and self._is_needed():
            self._task = asyncio.create_task(self._run(), name=self._name)

    async def _run(self) -> None:
        try:
            while not self._is_ending:
                self._is_idle = True
                await self._noted.wait()
                self._is_idle = False
                self._noted.clear()
                await self._work()
        finally:
            self._on_end()
