"""The owner of what runs beside requests: a task that fails is logged, counted and started again."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, Final

log = logging.getLogger(__name__)
FIRST_PAUSE_SECS: Final = 1.0
LAST_PAUSE_SECS: Final = 60.0
STOP_SECS: Final = 5.0
STEADY_SECS: Final = 300.0
"""After running for so long, a task that fails is tried again after the first pause."""

Work = Callable[[], Coroutine[Any, Any, None]]


class Background:
    """Tasks by name. `down` says which of them wait to be started again, and why they ended."""

    def __init__(self, first_pause: float = FIRST_PAUSE_SECS) -> None:
        self.down: dict[str, str] = {}
        self.failures: Counter[str] = Counter()
        self._first_pause = first_pause
        self._tasks: set[asyncio.Task[None]] = set()

    def keep(self, name: str, work: Work) -> None:
        """Run work that is not meant to end."""
        self._start(name, work, for_ever=True)

    def finish(self, name: str, work: Work) -> None:
        """Run work until it has ended without an error."""
        self._start(name, work, for_ever=False)

    async def stop(self, *, but: str | None = None) -> None:
        """Cancel all of them, `but` this one; return when they have ended.

        One whose thread goes on is left behind.
        """
        ending = {task for task in self._tasks if task.get_name() != but}
        for task in ending:
            task.cancel()
        if ending:
            await asyncio.wait(ending, timeout=STOP_SECS)

    def reason(self) -> str | None:
        """Why something is not being done at the moment, or None."""
        found = [f"{name} failed ({why}) and will be started again" for name, why in self.down.items()]
        return "; ".join(found) or None

    def _start(self, name: str, work: Work, *, for_ever: bool) -> None:
        self.failures[name] += 0
        task = asyncio.create_task(self._supervise(name, work, for_ever=for_ever), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _supervise(self, name: str, work: Work, *, for_ever: bool) -> None:
        loop = asyncio.get_running_loop()
        pause = self._first_pause
        while True:
            began = loop.time()
            try:
                await work()
                if not for_ever:
                    return
                self.down[name] = "it ended"
                log.error("%s ended, which it never should", name)
            except Exception as error:  # the top of a task: nothing above could report it
                self.down[name] = f"{type(error).__name__}: {error}"[:200]
                log.exception("%s failed", name)
            self.failures[name] += 1
            pause = self._first_pause if loop.time() - began > STEADY_SECS else pause
            await asyncio.sleep(pause)
            pause = min(2 * pause, LAST_PAUSE_SECS)
            del self.down[name]
