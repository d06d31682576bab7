"""Threads for what agents' folders make slow: apps in turn, and some are kept for apps that have none."""

import threading
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

from clawdforge.core.running.fair_slots import FairSlots
from clawdforge.drivers.folders.home_lock import run_to_end

T = TypeVar("T")


class FairThreads:
    """Belongs to one event loop. They are not those that everybody shares, which must not be used up."""

    def __init__(self, threads: Executor, count: int) -> None:
        self._threads = threads
        self._slots = FairSlots(count)

    async def run(self, app: str, work: Callable[[], T], stop: threading.Event | None = None) -> T:
        """Work whose caller is cancelled keeps its place, and its caller, until it has ended."""
        await self._slots.take(app)
        try:
            return await run_to_end(work, stop, self._threads)
        finally:
            self._slots.give_back(app)
