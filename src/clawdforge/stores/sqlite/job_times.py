"""What each job takes: for the operator, for the queue, and for the account of its app."""

import logging
import time
from collections.abc import Callable
from typing import Any, Final

from clawdforge.core.histogram import Histogram
from clawdforge.stores.sqlite.job_queue import Job, JobQueue

log = logging.getLogger(__name__)
SLOW_JOB_CPU_SECS: Final = 0.05
COMMIT_CLASSES: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


class JobTimes:
    """Warns by CPU and counts by the clock: that the machine is busy is not the fault of a job."""

    def __init__(self, jobs: JobQueue) -> None:
        self.histogram = Histogram(COMMIT_CLASSES)
        self._jobs = jobs

    def begin(self) -> tuple[float, float]:
        return time.perf_counter(), time.thread_time()

    def end(self, job: Job, begun: tuple[float, float], seconds: dict[str, float]) -> None:
        """What the job computed is added to the seconds of its app."""
        took, used = time.perf_counter() - begun[0], time.thread_time() - begun[1]
        self.histogram.observe(took)
        self._jobs.count(job, took, used)
        if job.app is not None:
            seconds[job.app] = seconds.get(job.app, 0.0) + used
        if used > SLOW_JOB_CPU_SECS:
            name = name_work(job.work)
            log.warning("%s kept the store's writer busy for %.0f ms of CPU", name, used * 1000)


def name_work(work: Callable[[Any], Any]) -> str:
    """The function that a job runs, by the place where it was written."""
    return f"{getattr(work, '__module__', '')}.{getattr(work, '__qualname__', repr(work))}"
