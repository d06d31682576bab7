"""The one thread that writes to Postgres: jobs that wait become one transaction with one commit.

A job that raises undoes only itself. When the connection is lost, the outcome of the batch is unknown: all
its jobs fail with that message, and the thread tries to connect again. Several servers may use a database:
their transactions come one after another, so that work finds what it has read unchanged until its commit.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import asyncpg

from clawdforge.core.histogram import Histogram
from clawdforge.core.model import Clock, Commit
from clawdforge.stores.postgres.link import LOST, Link
from clawdforge.stores.postgres.rows import PgSystemTx, PgTx
from clawdforge.stores.postgres.statements import PgDb
from clawdforge.stores.sqlite.job_queue import Job, JobQueue
from clawdforge.stores.sqlite.packs import DAMAGED
from clawdforge.stores.sqlite.queries import Queries
from clawdforge.stores.sqlite.writer import (
    COMMIT_CLASSES,
    FIRST_PROBE_SECS,
    LAST_PROBE_SECS,
    MAX_BATCH,
    Batch,
)
from clawdforge.wire.errors import SessionDamaged, Stopping, StoreUnavailable

log = logging.getLogger(__name__)
MAX_BATCH_SECS: Final = 0.025
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
    ) -> None:
        self.reason: str | None = None
        self.times = Histogram(COMMIT_CLASSES)
        self.job_times = Histogram(COMMIT_CLASSES)
        self._open_link = open_link
        self._queries = queries
        self._clock = clock
        self._deliver = deliver
        self._loop = asyncio.get_running_loop()
        self._jobs = JobQueue()
        self._db: PgDb | None = PgDb(link, queries)
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
                self._write(db, Batch([first]))
                wait, probe_at = FIRST_PROBE_SECS, time.monotonic() + FIRST_PROBE_SECS

    def _write(self, db: PgDb, batch: Batch) -> None:
        failure: StoreUnavailable | None = StoreUnavailable(retry_after=1.0)
        began = time.perf_counter()
        try:
            db.link.run(BEGIN)
            for job in batch.jobs:
                self._run_job(db, job, batch)
                batch.has_begun = True
                if len(batch.jobs) < MAX_BATCH and time.perf_counter() - began < MAX_BATCH_SECS:
                    batch.jobs.extend(filter(None, [self._jobs.take_more()]))
            db.link.run("COMMIT")
            self.times.observe(time.perf_counter() - began)
            failure = None
        except (*LOST, asyncpg.PostgresError) as error:  # an error of a job itself was caught with it
            self._drop_link(error)
        finally:
            self._hand_over(batch, failure)

    def _run_job(self, db: PgDb, job: Job, batch: Batch) -> None:
        """Undoes a job that raises, and keeps the error for its caller."""
        begun = time.perf_counter()
        if batch.has_begun:
            db.link.run("SAVEPOINT job")
        try:
            self._do(db, job, batch)
        except LOST:
            raise
        except BaseException as error:  # noqa: BLE001 - it is the caller's
            job.error = SessionDamaged() if isinstance(error, DAMAGED) else error
            db.link.run("ROLLBACK TO SAVEPOINT job" if batch.has_begun else "ROLLBACK")
            if not batch.has_begun:
                db.link.run(BEGIN)
        if batch.has_begun:
            db.link.run("RELEASE SAVEPOINT job")
        took = time.perf_counter() - begun
        self.job_times.observe(took)
        self._jobs.count(job, took)

    def _do(self, db: PgDb, job: Job, batch: Batch) -> None:
        if job.app is None:
            job.result = job.work(PgSystemTx(db))
            return
        tx = PgTx(db, job.app, self._clock)
        job.result = job.work(tx)
        if tx.write_changes():
            batch.changed.add(job.app)
        for session_id, events in tx.appended.items():
            batch.appended.setdefault((job.app, session_id), []).extend(events)

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
        self._db = PgDb(link, self._queries)
        self.reason = None
        log.warning("the store can be written again")
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._deliver, [Commit("", "", ())], {""}, [])
