"""What takes the interpreter for long, beside the event loop: in a thread, one at a time, apps in turn.

A thread that parses or encodes megabytes lets the loop run only now and then, and four of them hardly ever:
beside four that parsed, the slowest GETs took 300 ms instead of 10. So there is one, and after its work
nobody begins the next for twice as long as it took: two thirds of the interpreter are left to the others.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from clawdforge.core.pacing.loop_turns import InTurn

Result = TypeVar("Result")
RESTS: Final = 2
MOST_REST_SECS: Final = 0.2


class Computing:
    """Belongs to one event loop. Nothing that waits for a lock or a disk belongs here: others wait for it."""

    def __init__(self) -> None:
        self._charge: Callable[[str, float], None] | None = None
        self._is_busy = False
        self._waiting = InTurn()

    def charge_to(self, charge: Callable[[str, float], None]) -> None:
        """Call this in the event loop with an app and the seconds that it has computed."""
        self._charge = charge

    async def run(self, app: str, work: Callable[[], Result]) -> Result:
        """The result of this work, which is done when it is this app's turn.

        Whoever is cancelled does not wait for it; the thread goes on, and the others wait for its end.
        """
        if self._is_busy:
            await self._waiting.wait(app, self._go_on)
        self._is_busy = True
        loop = asyncio.get_running_loop()

        def work_and_rest() -> Result:
            begun = time.thread_time()
            try:
                return work()
            finally:
                loop.call_soon_threadsafe(self._end, app, time.thread_time() - begun)

        try:
            working = loop.run_in_executor(None, work_and_rest)
        except RuntimeError:  # there may be no more threads
            self._go_on()
            raise
        working.add_done_callback(_note_error)  # whoever was cancelled does not ask for it
        return await asyncio.shield(working)

    def _end(self, app: str, cpu: float) -> None:
        asyncio.get_running_loop().call_later(min(RESTS * cpu, MOST_REST_SECS), self._go_on)
        if self._charge is not None:
            self._charge(app, cpu)

    def _go_on(self) -> None:
        """It stays busy when somebody waits: nobody else can begin before they do."""
        self._is_busy = False
        while not self._is_busy and (app := self._waiting.next_app()) is not None:
            self._is_busy = self._waiting.let_in(app) == 1


def _note_error(done: asyncio.Future[Any]) -> None:
    if not done.cancelled():
        done.exception()
