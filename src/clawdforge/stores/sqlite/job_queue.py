"""The jobs that wait for the writer: one line for each app, served in turn, each in its own order.

So a crowd of one app's jobs delays a job of another by one of them. A slice of a long change comes only first
in a transaction, so that nobody who is done has to wait for it; so does a job of an app whose jobs took long
lately, except in a transaction of its own. One of several apps is soon closed to those who are in it; whoever
is not may still come in. While others wait, slices get at most half of the writer's time. Who has had more
than its share waits (`writer_shares.py`).
"""

import asyncio
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from clawdforge.stores.sqlite.writer_shares import CommitCosts, WriterShares

MAX_BATCH_SECS: Final = 0.025
"""After so long nothing more is added to a transaction: whoever is done waits for its commit."""

SHARED_BATCH_SECS: Final = 0.003
"""After so long each app has one job in a transaction that is not of one app alone."""

LONG_JOB_SECS: Final = 0.005
LONG_FOR_SECS: Final = 1.0
"""So long an app is known for a job that took long."""


@dataclass(slots=True)
class Job:
    """Work for one app, or for the system where `app` is None, with the future of its caller."""

    app: str | None
    work: Callable[[Any], Any]
    future: asyncio.Future[Any]
    is_slice: bool = False
    result: Any = None
    error: BaseException | None = None

    def resolve(self) -> None:
        if self.future.done():  # the caller was cancelled, but its work was done
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


def tell(listeners: Iterable[Callable[[], None]], jobs: Iterable[Job]) -> None:
    """Tell listeners first, then callers. One that fails does not stop the others, and raises at the end."""
    try:
        _call_all(iter(listeners))
    finally:
        for job in jobs:
            job.resolve()


def _call_all(calls: Iterator[Callable[[], None]]) -> None:
    has_failed = True
    try:
        for call in calls:
            call()
        has_failed = False
    finally:
        if has_failed:
            _call_all(calls)  # those that are left


class JobQueue:
    """Filled by any thread and emptied by one."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.is_closed = False
        self._clock = clock
        self._lines: OrderedDict[str | None, deque[Job]] = OrderedDict()
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._ahead = 0.0  # seconds that others are to have before the next slice
        self._shares = WriterShares()
        self._commits = CommitCosts()
        self._long: dict[str, float] = {}  # apps whose jobs take long, and until when they are taken to
        self._begun = 0.0
        self._inside: set[str | None] = set()  # whose jobs are in this transaction

    def put(self, job: Job) -> bool:
        """False when it was closed before: then the job is not taken."""
        with self._lock:
            if self.is_closed:
                return False
            self._lines.setdefault(job.app, deque()).append(job)
            if job.app is not None:
                self._shares.see(job.app, self._clock())
            self._changed.notify()
            return True

    def close(self) -> None:
        """No job comes in any more; those that are there can still be taken."""
        with self._lock:
            self.is_closed = True
            self._changed.notify()

    def is_empty(self) -> bool:
        return not self._lines

    def take_first(self, patience: float | None) -> Job | None:
        """The first job of a transaction; waits for one until patience runs out or it is closed."""
        end = None if patience is None else self._clock() + patience
        with self._lock:
            while True:
                now = self._clock()
                found = self._find_first(now)
                if found is not None:
                    self._begun, self._inside = now, {found.app}
                    return self._take(found)
                if (self.is_closed and not self._lines) or (end is not None and now >= end):
                    return None
                waits = [self._rest_of(app, now) for app in self._lines]
                waits += [] if end is None else [end - now]
                self._changed.wait(min(waits, default=None))

    def _find_first(self, now: float) -> Job | None:
        if not self._lines:
            return None
        ordinary = self._find(now, is_slice=False)
        slices = self._find(now, is_slice=True)
        return slices if slices is not None and (ordinary is None or self._ahead <= 0) else ordinary

    def take_more(self) -> Job | None:
        """Another job for the same transaction, if one waits."""
        if not self._lines:  # whoever comes just now comes after this look
            return None
        with self._lock:
            found = self._find_more(self._clock())
            if found is None:
                return None
            self._inside.add(found.app)
            return self._take(found)

    def _find_more(self, now: float) -> Job | None:
        took, is_shared = now - self._begun, len(self._inside) > 1
        if took >= MAX_BATCH_SECS:
            return None
        out: set[str | None] = {app for app, end in self._long.items() if end > now}
        if is_shared and took >= SHARED_BATCH_SECS:
            out |= self._inside
        found = self._find(now, is_slice=False, but=out)
        if found is None and not is_shared:
            found = self._find(now, is_slice=False)
            return found if found is not None and found.app in self._inside else None
        return found

    def put_back(self, jobs: Iterable[Job]) -> None:
        """What was taken and not done comes next in its line again, before what came in meanwhile."""
        with self._lock:
            for job in reversed(list(jobs)):
                line = self._lines.setdefault(job.app, deque())
                line.appendleft(job)
                self._lines.move_to_end(job.app, last=False)

    def take_all(self) -> list[Job]:
        """Everything that waits, for whoever has to turn it away."""
        with self._lock:
            found = [job for line in self._lines.values() for job in line]
            self._lines.clear()
            return found

    def count(self, job: Job, seconds: float, cpu: float = 0.0) -> None:
        """Tell how long a job took. After a slice, others have as long; what came before it is forgotten.

        Else the slices of a quiet night would keep the first one of a busy morning waiting for as long. Who
        is known for long jobs is so by what they computed: that the machine is busy is not their fault.
        """
        self._ahead = seconds if job.is_slice else max(0.0, self._ahead - seconds)
        if job.app is not None and not job.is_slice and cpu > LONG_JOB_SECS:
            now = self._clock()
            self._long = {app: end for app, end in self._long.items() if end > now}
            self._long[job.app] = now + LONG_FOR_SECS

    def charge(self, jobs: dict[str, float], commit: float, written: int = 0) -> None:
        """Tell how long the jobs of each app took in a transaction, and its commit, of which most belongs to
        whoever wrote most, and how many bytes were written: those are of whoever computed most."""
        now, whole = self._clock(), sum(jobs.values())
        due = self._commits.due(commit, whole)
        most = max(jobs, key=jobs.__getitem__, default=None)
        with self._lock:
            for app, took in jobs.items():
                part = took / whole if whole else 0.0
                self._shares.charge(app, took, due * part, now, written if app == most else 0)

    def _find(self, now: float, *, is_slice: bool, but: Container[str | None] = ()) -> Job | None:
        """The first job of this kind that is next in its line, and need not wait. What is behind a slice
        waits with it."""
        for app, line in self._lines.items():
            if line[0].is_slice is is_slice and app not in but and not self._rest_of(app, now):
                return line[0]
        return None

    def _rest_of(self, app: str | None, now: float) -> float:
        """The system never waits, and at the end nobody does."""
        return 0.0 if app is None or self.is_closed else self._shares.rest_of(app, now)

    def _take(self, chosen: Job) -> Job:
        """Out of its line, which comes last then."""
        line = self._lines.pop(chosen.app)
        line.popleft()
        if line:
            self._lines[chosen.app] = line
        return chosen
