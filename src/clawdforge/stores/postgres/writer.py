"""The one thread that writes to Postgres: jobs that wait become one batch with one commit.

Most batches are two statements: one reads, and one writes and commits. What cannot be done so is done in the
plain way, a statement for each call in a transaction. A job that raises undoes only itself. When the
connection is lost, the outcome of the batch is unknown: all its jobs fail with that message, and the thread
tries to connect again. Several servers may use a database: their batches come one after another, by a lock
that is held from before the first read until after the commit, so that work finds what it read unchanged.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import asyncpg

from clawdforge.core.clock import Clock
from clawdforge.core.histogram import Histogram
from clawdforge.core.models.rows import Commit
from clawdforge.stores.postgres.effects import Effects
from clawdforge.stores.postgres.functions import Functions
from clawdforge.stores.postgres.gathered import Gathered
from clawdforge.stores.postgres.link import LOST, Link
from clawdforge.stores.postgres.ordinary import Ordinary
from clawdforge.stores.postgres.statements import PgDb
from clawdforge.stores.postgres.works import Works
from clawdforge.stores.sqlite.job_queue import MAX_BATCH_SECS, SHARED_BATCH_SECS, Job, JobQueue
from clawdforge.stores.sqlite.job_times import COMMIT_CLASSES, JobTimes
from clawdforge.stores.sqlite.packs import DAMAGED
from clawdforge.stores.sqlite.queries import Queries
from clawdforge.stores.sqlite.writer import FIRST_PROBE_SECS, LAST_PROBE_SECS, Batch
from clawdforge.wire.errors import SessionDamaged, Stopping, StoreUnavailable

log = logging.getLogger(__name__)
MOST_JOBS: Final = 64
"""What they will ask for is read at once, while all others wait."""
BEGIN: Final = "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_advisory_xact_lock(4710423071)"
LOCK: Final = "SELECT pg_try_advisory_lock(4710423071)"
TAKEN: Final = "a server uses this database; stop it, or name another database"


def lock_database(link: Link) -> None:
    """Be the only one that writes, as long as the connection lives."""
    if link.fetch(LOCK) != [(True,)]:
        raise StoreUnavailable(TAKEN)


class PgWriter:
    """Calls `deliver` in the event loop, once for each batch, after it is on stable storage."""

    def __init__(
        self,
        open_link: Callable[[], Link],
        link: Link,
        queries: Queries,
        clock: Clock,
        deliver: Callable[[list[Commit], set[str], list[Job]], None],
        rise: Callable[[], int],
    ) -> None:
        self.reason: str | None = None
        self.times = Histogram(COMMIT_CLASSES)
        self._open_link = open_link
        self._queries = queries
        self._deliver = deliver
        self._loop = asyncio.get_running_loop()
        self._jobs = JobQueue()
        self.job_times = JobTimes(self._jobs)
        self._ordinary = Ordinary(queries)
        self._effects = Effects(queries)
        self._works = Works(clock, rise)
        self._left: deque[Job] = deque()  # jobs that were taken, and are in no batch yet
        self._batch_began: float | None = None
        self._use_link(link)
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    def submit(
        self, app: str | None, work: Callable[[Any], Any], *, is_slice: bool = False
    ) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self._loop.create_future()
        if not self._jobs.put(Job(app, work, future, is_slice)):
            raise Stopping
        return future

    def check(self) -> None:
        """See whether something could be written, for whoever asks for `reason` next."""
        if self.reason is None:
            with contextlib.suppress(Stopping):
                self.submit(None, lambda _: None).add_done_callback(lambda done: done.exception())

    @property
    def backend(self) -> int:
        """The process of Postgres that serves this thread, 0 if there is none."""
        db = self._db
        return 0 if db is None else db.link.backend

    def waited(self) -> float:
        """For how many seconds the present batch has been waiting, for whatever it is; any thread may ask."""
        began = self._batch_began
        return 0.0 if began is None else time.monotonic() - began

    async def close(self) -> None:
        """Jobs that were submitted before are still written."""
        self._jobs.close()
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        try:
            while not self._serve():
                pass
        finally:  # whatever happened, nobody may wait for ever
            self._jobs.close()
            self.reason = self.reason or "the store is closed"
            self._turn_away()
            if self._db is not None:
                self._db.link.close()

    def _serve(self) -> bool:
        """Write until the store is closed. False after a bug of ours: then go on with a new connection."""
        try:
            self._write_all()
        except Exception as error:  # the top of a thread: without it nobody could write any more
            log.exception("the writing thread failed; it goes on")
            self._drop_link(error)
            self._turn_away(*self._give_up_left())
            return False
        return True

    def _write_all(self) -> None:
        wait, probe_at = FIRST_PROBE_SECS, 0.0
        while True:
            db = self._db
            first = self._jobs.take_first(None if db else max(0.0, probe_at - time.monotonic()))
            if first is None and self._jobs.is_closed:
                return
            if db is None:
                self._turn_away(*([] if first is None else [first]))
                if time.monotonic() >= probe_at and not self._jobs.is_closed:
                    self._probe()
                    wait = min(wait * 2, LAST_PROBE_SECS)
                    probe_at = time.monotonic() + wait
            elif first is not None:
                self._left.extend(self._take_some(first))
                self._write_batch(db)
                self._jobs.put_back(self._give_up_left())
                wait, probe_at = FIRST_PROBE_SECS, time.monotonic() + FIRST_PROBE_SECS

    def _take_some(self, first: Job) -> list[Job]:
        """As many as one batch may hold. What is left of them goes back, so that nobody waits for all."""
        jobs = [first]
        while len(jobs) < MOST_JOBS and (job := self._jobs.take_more()) is not None:
            jobs.append(job)
        return jobs

    def _write_batch(self, db: PgDb) -> None:
        """The first of them in one transaction; how many that are depends on what they do."""
        write = self._write_plain if self._is_plain(self._left[0]) else self._write_gathered
        self._batch_began = time.monotonic()
        try:
            write(db, self._left)
        finally:
            self._batch_began = None
        if self._db is None:
            self._turn_away(*self._give_up_left())

    def _is_plain(self, job: Job) -> bool:
        return self._functions.is_refused or self._works.is_plain(job)

    def _give_up_left(self) -> list[Job]:
        left = list(self._left)
        self._left.clear()
        return left

    def _write_gathered(self, db: PgDb, left: deque[Job]) -> None:
        """Jobs stay left that ask for what those before them write, or that need the plain way."""
        batch = Batch([])
        failure: StoreUnavailable | None = StoreUnavailable(retry_after=1.0)
        began = time.perf_counter()
        gathered = Gathered(db, self._functions, self._ordinary, self._effects)
        try:
            if len(left) > 1:
                gathered.learn(self._works.ask(db, left))
            start = time.perf_counter()
            while left and not self._is_plain(left[0]) and _may_come_in(left[0], batch, start):
                begun = self.job_times.begin()
                if not self._works.run_gathered(gathered, left, batch):
                    break
                self.job_times.end(batch.jobs[-1], begun, batch.seconds)
            ran = time.perf_counter()
            gathered.write()
            if batch.jobs:
                self.times.observe(time.perf_counter() - began)
                self._jobs.charge(batch.seconds, time.perf_counter() - ran)
            failure = None
        except LOST as error:
            self._drop_link(error)
        except asyncpg.PostgresError as error:  # of one of the jobs, and nothing of them is written
            log.info("jobs are run again, each by itself: %s", error)
            left.extendleft(reversed(batch.jobs))
            self._works.refuse(batch.jobs or left)
            batch = Batch([])
            self._give_lock_back()
        finally:
            self._hand_over(batch, failure)

    def _give_lock_back(self) -> None:
        try:
            self._functions.give_lock_back()
        except (*LOST, asyncpg.PostgresError) as error:
            self._drop_link(error)

    def _write_plain(self, db: PgDb, left: deque[Job]) -> None:
        """Each call of a job is a statement."""
        batch = Batch([])
        failure: StoreUnavailable | None = StoreUnavailable(retry_after=1.0)
        began = time.perf_counter()
        try:
            db.link.run(BEGIN)
            start = time.perf_counter()  # what it waited for another server is nobody's here
            while left and self._is_plain(left[0]) and _may_come_in(left[0], batch, start):
                batch.jobs.append(left.popleft())
                self._works.count_plain(batch.jobs[-1])
                self._run_job(db, batch.jobs[-1], batch)
                batch.has_begun = True
            db.link.run("COMMIT")
            done = time.perf_counter()
            self.times.observe(done - began)
            self._jobs.charge(batch.seconds, max(0.0, done - start - sum(batch.seconds.values())))
            failure = None
        except (*LOST, asyncpg.PostgresError) as error:  # an error of a job itself was caught with it
            self._drop_link(error)
        finally:
            self._hand_over(batch, failure)

    def _run_job(self, db: PgDb, job: Job, batch: Batch) -> None:
        """Undoes a job that raises, and keeps the error for its caller."""
        begun = self.job_times.begin()
        if batch.has_begun:
            db.link.run("SAVEPOINT job")
        try:
            self._works.run(db, job, batch)
        except LOST:
            raise
        except BaseException as error:  # noqa: BLE001 - it is the caller's
            job.error = SessionDamaged() if isinstance(error, DAMAGED) else error
            db.link.run("ROLLBACK TO SAVEPOINT job" if batch.has_begun else "ROLLBACK")
            if not batch.has_begun:
                db.link.run(BEGIN)
        if batch.has_begun:
            db.link.run("RELEASE SAVEPOINT job")
        self.job_times.end(job, begun, batch.seconds)

    def _turn_away(self, *jobs: Job) -> None:
        refusal = StoreUnavailable(
            f"the store cannot be written now ({self.reason}); nothing was recorded, try again later",
            retry_after=1.0,
        )
        self._hand_over(Batch([*jobs, *self._jobs.take_all()]), refusal)

    def _hand_over(self, batch: Batch, failure: StoreUnavailable | None) -> None:
        if failure is not None:
            batch.fail(failure)
        if batch.jobs:
            with contextlib.suppress(RuntimeError):  # the event loop is gone, and the callers with it
                self._loop.call_soon_threadsafe(self._deliver, batch.commits(), batch.changed, batch.jobs)

    def _use_link(self, link: Link) -> None:
        self._db: PgDb | None = PgDb(link, self._queries)
        self._functions = Functions(self._db, self._ordinary)

    def _drop_link(self, error: Exception) -> None:
        self.reason = str(error) or type(error).__name__
        log.error("the store cannot be written: %s", self.reason)
        db, self._db = self._db, None
        if db is not None:
            db.link.close()

    def _probe(self) -> None:
        """Open a new connection."""
        try:
            link = self._open_link()
        except (*LOST, asyncpg.PostgresError, StoreUnavailable) as error:
            self.reason = str(error) or type(error).__name__
            return
        self._use_link(link)
        self.reason = None
        log.warning("the store can be written again")
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._deliver, [Commit("", "", ())], {""}, [])


def _may_come_in(job: Job, batch: Batch, start: float) -> bool:
    """As in `JobQueue.take_more`: into a batch that is not slow, and each once if it is of several apps."""
    if not batch.jobs:
        return True
    took, apps = time.perf_counter() - start, {one.app for one in batch.jobs}
    is_closed = took >= SHARED_BATCH_SECS and len(apps) > 1 and job.app in apps
    return not is_closed and took < MAX_BATCH_SECS
