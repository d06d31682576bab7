"""Threads for what agents' folders make slow: apps in turn, and some are kept for apps that have none.

They and the event loop share one interpreter, so what they compute is charged to the app whose folder it is.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

from clawdforge.core.running.fair_slots import FairSlots
from clawdforge.drivers.folders.home_lock import run_to_end

T = TypeVar("T")


class FairThreads:
    """Belongs to one event loop. They are not those that everybody shares, which must not be used up."""

    def __init__(
        self, threads: Executor, count: int, charge: Callable[[str, float], None] = lambda _, __: None
    ) -> None:
        """`charge` is called in the event loop with an app and the seconds that it has computed."""
        self._threads = threads
        self._slots = FairSlots(count)
        self._charge = charge

    def charge_to(self, charge: Callable[[str, float], None]) -> None:
        self._charge = charge

    async def run(self, app: str, work: Callable[[], T], stop: threading.Event | None = None) -> T:
        """Work whose caller is cancelled keeps its place, and its caller, until it has ended."""
        await self._slots.take(app)
        computed = 0.0

        def work_and_count() -> T:
            nonlocal computed
            begun = time.thread_time()
            try:
                return work()
            finally:
                computed = time.thread_time() - begun

        try:
            return await run_to_end(work_and_count, stop, self._threads)
        finally:
            self._slots.give_back(app)
            if app:  # nobody is named where a fork begins
                self._charge(app, computed)
