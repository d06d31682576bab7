"""Measures how long the event loop takes to answer, and names what held it up.

A thread asks the loop for a sign of life again and again. When none comes for a while, it looks which task
runs and where. Everybody waits for that task: what takes long belongs into slices or into a thread.
"""

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Final

from clawdforge.core.histogram import Histogram

log = logging.getLogger(__name__)

EVERY_SECS: Final = 0.25
STALL_SECS: Final = 0.1
QUIET_SECS: Final = 10.0
"""So long there is no second warning: the histogram counts them all."""

OURS: Final = "clawdforge"
CLASSES: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


@dataclass(frozen=True, slots=True)
class Stall:
    """How long the loop stood still, how much of that it computed, and what ran when it was noticed."""

    seconds: float
    cpu: float
    what: str


class Watchdog:
    def __init__(self, every: float = EVERY_SECS, patience: float = STALL_SECS) -> None:
        self.delays = Histogram(CLASSES)
        self._every = every
        self._patience = patience
        self._warned_at = -QUIET_SECS

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the running loop until this is left."""
        loop, thread = asyncio.get_running_loop(), threading.get_ident()
        stopping = threading.Event()
        watcher = threading.Thread(
            target=self._watch, args=(loop, thread, stopping), name="loop-watchdog", daemon=True
        )
        watcher.start()
        try:
            yield
        finally:
            stopping.set()

    def _watch(self, loop: asyncio.AbstractEventLoop, thread: int, stopping: threading.Event) -> None:
        clock = time.pthread_getcpuclockid(thread)
        while not stopping.wait(self._every):
            answered = threading.Event()
            begun, cpu = time.monotonic(), time.clock_gettime(clock)
            try:
                loop.call_soon_threadsafe(answered.set)
            except RuntimeError:  # the loop is closed
                return
            what = ""
            while not answered.wait(self._patience) and not stopping.is_set():
                what = what or describe_running(loop, thread)
            delay = time.monotonic() - begun
            self.delays.observe(delay)
            if what:
                self.report(Stall(delay, time.clock_gettime(clock) - cpu, what))

    def report(self, stall: Stall) -> None:
        now = time.monotonic()
        if now - self._warned_at < QUIET_SECS:
            return
        self._warned_at = now
        log.warning(
            "the event loop stood still for %.0f ms (%.0f ms of CPU) in %s",
            stall.seconds * 1000,
            stall.cpu * 1000,
            stall.what,
        )


def describe_running(loop: asyncio.AbstractEventLoop, thread: int) -> str:
    """The task that runs now, and the line of ours that it is at. Asked from another thread."""
    task = asyncio.current_task(loop)
    name = task.get_name() if task is not None else "a callback"
    frame: FrameType | None = sys._current_frames().get(thread)  # noqa: SLF001 - the documented way
    while frame is not None and OURS not in frame.f_globals.get("__name__", ""):
        frame = frame.f_back
    if frame is None:
        return name
    return f"{name} ({frame.f_globals['__name__']}.{frame.f_code.co_name}, line {frame.f_lineno})"
