"""Finds what holds up everybody in a test's own process: a long step of a task, a long job of the writer.

Only time that a thread computed counts, by its own clock and without the garbage collector's, so that a test
does not fail because the machine is busy or the test run is large. That clock may run on while the host gives
the processor to others, so as much as was stolen during the test is taken off. And only our own code counts:
a step of a task whose coroutine is in the package, a job that the package submitted. What a test does itself
it may do.
"""

import asyncio
import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from clawdforge.stores.sqlite.job_queue import Job
from clawdforge.stores.sqlite.job_times import name_work
from clawdforge.stores.sqlite.writer import Batch, Writer
from proofs.kit.stolen import read_stolen_secs

PACKAGE: Final = "clawdforge"
LOOP_SECS: Final = 0.1
JOB_SECS: Final = 0.05


class Stalls:
    """What was found while it watched, each as a sentence; it is there at the end."""

    def __init__(
        self,
        loop_secs: float = LOOP_SECS,
        job_secs: float = JOB_SECS,
        read_stolen: Callable[[], float] = read_stolen_secs,
    ) -> None:
        self.found: list[str] = []
        self._beyond: list[tuple[float, str]] = []  # by how much what took too long
        self._read_stolen = read_stolen
        self._loop_secs = loop_secs
        self._job_secs = job_secs
        self._collected = threading.local()
        self._began = threading.local()

    @contextmanager
    def watch(self) -> Iterator[None]:
        run_handle, run_job = asyncio.events.Handle._run, Writer._run_job
        stalls, stolen = self, self._read_stolen()

        def timed_handle(handle: asyncio.events.Handle) -> None:
            task = getattr(getattr(handle, "_callback", None), "__self__", None)
            name = _name_task(task)
            if name is None:
                run_handle(handle)
                return
            with stalls.timed(name, stalls._loop_secs, "held up the event loop"):
                run_handle(handle)

        def timed_job(writer: Writer, db: Any, job: Job, batch: Batch) -> None:
            name = name_work(job.work)
            if not name.startswith(f"{PACKAGE}."):
                run_job(writer, db, job, batch)
                return
            with stalls.timed(name, stalls._job_secs, "held up the writer"):
                run_job(writer, db, job, batch)

        gc.callbacks.append(self._on_collection)
        _replace(asyncio.events.Handle, "_run", timed_handle)
        _replace(Writer, "_run_job", timed_job)
        try:
            yield
        finally:
            _replace(asyncio.events.Handle, "_run", run_handle)
            _replace(Writer, "_run_job", run_job)
            gc.callbacks.remove(self._on_collection)
            stolen = self._read_stolen() - stolen
            self.found += [what for beyond, what in self._beyond if beyond > stolen]

    @contextmanager
    def timed(self, name: str, most: float, did: str) -> Iterator[None]:
        begun, collected = time.thread_time(), getattr(self._collected, "secs", 0.0)
        try:
            yield
        finally:
            pauses = getattr(self._collected, "secs", 0.0) - collected
            used = time.thread_time() - begun - pauses
            if used > most and sys.gettrace() is None:  # coverage makes everything slow
                what = f"{name} {did} for {used * 1000:.0f} ms of CPU; allowed are {most * 1000:.0f}"
                self._beyond.append((used - most, what))

    def _on_collection(self, phase: str, _info: dict[str, int]) -> None:
        if phase == "start":
            self._began.at = time.thread_time()
        else:
            spent = time.thread_time() - getattr(self._began, "at", time.thread_time())
            self._collected.secs = getattr(self._collected, "secs", 0.0) + spent


def _name_task(task: object) -> str | None:
    """The coroutine of a task of ours; None for anybody else's."""
    get = getattr(task, "get_coro", None)
    code = getattr(get(), "cr_code", None) if callable(get) else None
    if code is None or f"/src/{PACKAGE}/" not in code.co_filename:
        return None
    return str(code.co_qualname)


def _replace(owner: type, name: str, function: Callable[..., Any]) -> None:
    setattr(owner, name, function)
