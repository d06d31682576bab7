"""The one thread that writes: jobs that wait become one transaction with one commit and one fsync.

A job that raises undoes only itself: the first by a rollback, each that comes after it by a savepoint of its
own. When the disk fails, the outcome of the batch is unknown: all its jobs fail with that message, the
connection is thrown away, and the thread keeps probing with a real write until the disk works again.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import apsw

from clawdforge.core.clock import Clock
from clawdforge.core.histogram import Histogram
from clawdforge.core.models.events import StoredEvent
from clawdforge.core.models.rows import Commit
from clawdforge.stores.sqlite.checkpoints import Checkpoints
from clawdforge.stores.sqlite.connection import DISK_ERRORS, Db, open_writer
from clawdforge.stores.sqlite.job_queue import Job, JobQueue
from clawdforge.stores.sqlite.job_times import COMMIT_CLASSES, JobTimes
from clawdforge.stores.sqlite.queries import Queries
from clawdforge.stores.sqlite.system import SqliteSystemTx
from clawdforge.stores.sqlite.tx import SqliteTx
from clawdforge.wire.errors import SessionDamaged, Stopping, StoreUnavailable

log = logging.getLogger(__name__)

MAX_BATCH: Final = 256
FIRST_PROBE_SECS: Final = 0.05
LAST_PROBE_SECS: Final = 1.0


@dataclass(slots=True)
class Batch:
    jobs: list[Job]
    appended: dict[tuple[str, str], list[StoredEvent]] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)  # apps whose lists look otherwise
    has_begun: bool = False  # a job was run in its transaction
    seconds: dict[str, float] = field(default_factory=dict)  # of CPU, for the jobs of each app

    def commits(self) -> list[Commit]:
        return [Commit(app, session, tuple(events)) for (app, session), events in self.appended.items()]

    def count_written(self, size: int) -> int:
        """How many of the bytes that a commit wrote count as those of apps: none beside the system's."""
        return 0 if None in [job.app for job in self.jobs] else size

    def fail(self, error: StoreUnavailable) -> None:
        self.appended.clear()
        self.changed.clear()
        for job in self.jobs:
            job.result, job.error = None, StoreUnavailable(error.message, retry_after=error.retry_after)


class Writer:
    """Calls `deliver` in the event loop, once for each batch, after it is on stable storage."""

    def __init__(
        self,
        path: Path,
        connection: apsw.Connection,
        queries: Queries,
        clock: Clock,
        deliver: Callable[[list[Commit], set[str], list[Job]], None],
    ) -> None:
        self.reason: str | None = None
        self.commits = 0
        self.times = Histogram(COMMIT_CLASSES)
        self.checkpoints = Checkpoints(path)
        self._path = path
        self._queries = queries
        self._clock = clock
        self._deliver = deliver
        self._loop = asyncio.get_running_loop()
        self._jobs = JobQueue()
        self.job_times = JobTimes(self._jobs)
        self._db: Db | None = None
        self._use_connection(connection)
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    def submit(
        self, app: str | None, work: Callable[[Any], Any], *, is_slice: bool = False
    ) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self._loop.create_future()
        if not self._jobs.put(Job(app, work, future, is_slice)):
            raise Stopping
        return future

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
            self._turn_away(StoreUnavailable(_not_written(self.reason)))
            self.checkpoints.stop()  # the last to close moves the rest of the log
        if self._db:
            with contextlib.suppress(*DISK_ERRORS):
                self._db.connection.close()

    def _serve(self) -> bool:
        """Write until the store is closed. False after a bug of ours: then go on with a new connection."""
        try:
            self._write_all()
        except Exception as error:  # the top of a thread: without it nobody could write any more
            log.exception("the writing thread failed; it goes on")
            self._drop_connection(error)
            return False
        return True

    def _write_all(self) -> None:
        wait = FIRST_PROBE_SECS
        probe_at = 0.0
        while True:
            db = self._db
            first = self._jobs.take_first(None if db else max(0.0, probe_at - time.monotonic()))
            if first is None and self._jobs.is_closed:
                return
            if db is None:
                refusal = StoreUnavailable(_not_written(self.reason), retry_after=1.0)
                self._turn_away(refusal, *([] if first is None else [first]))
                if time.monotonic() >= probe_at and not self._jobs.is_closed:
                    self._probe()
                    wait = min(wait * 2, LAST_PROBE_SECS)
                    probe_at = time.monotonic() + wait
            elif first is not None:
                self._write(db, Batch([first]))
                wait, probe_at = FIRST_PROBE_SECS, time.monotonic() + FIRST_PROBE_SECS

    def _turn_away(self, refusal: StoreUnavailable, *jobs: Job) -> None:
        self._hand_over(Batch([*jobs, *self._jobs.take_all()]), refusal)

    def _write(self, db: Db, batch: Batch) -> None:
        is_written = False
        began = time.perf_counter()
        try:
            while damaged := self._run_jobs(db, batch):
                damaged.error = SessionDamaged()
            ran = time.perf_counter()
            self.checkpoints.written = 0
            db.connection.execute("COMMIT")
            self.commits += 1
            done = time.perf_counter()
            self.times.observe(done - began)
            is_written = True
            self._jobs.charge(batch.seconds, done - ran, batch.count_written(self.checkpoints.written))
        except apsw.Error as error:  # an error of a job itself was caught by its savepoint
            self._drop_connection(error)
        finally:
            self._hand_over(batch, None if is_written else StoreUnavailable(retry_after=1.0))
        if is_written:
            self.checkpoints.after_commit(db.connection, jobs_wait=not self._jobs.is_empty())

    def _run_jobs(self, db: Db, batch: Batch) -> Job | None:
        """Run the jobs that may still succeed, in a new transaction, and those that come meanwhile.

        A job that meets a damaged page spoils the transaction: it is returned, and the others try again.
        """
        batch.appended.clear()
        batch.changed.clear()
        db.begin()
        batch.has_begun = False
        for job in self._gather(batch):
            if isinstance(job.error, SessionDamaged):
                continue
            job.error = None
            begun = self.job_times.begin()
            try:
                self._run_job(db, job, batch)
                batch.has_begun = True
            except apsw.CorruptError:
                log.exception("a part of %s is damaged", self._path)
                db.undo("ROLLBACK")
                return job
            finally:
                self.job_times.end(job, begun, batch.seconds)
        return None

    def _gather(self, batch: Batch) -> Iterator[Job]:
        """What is in the batch, and what waits, as long as the batch is not large, and may come in."""
        yield from tuple(batch.jobs)
        while len(batch.jobs) < MAX_BATCH and (job := self._jobs.take_more()) is not None:
            batch.jobs.append(job)
            yield job

    def _run_job(self, db: Db, job: Job, batch: Batch) -> None:
        """Run one job. If it raises it is undone by itself, and the error is kept for its caller.

        The first of a transaction has nothing before it to keep, and most are alone in theirs: it needs no
        savepoint, for which SQLite would keep every page that changes as it was. Errors of the disk fail the
        whole batch.
        """
        connection, is_first = db.connection, not batch.has_begun
        if not is_first:
            connection.execute("SAVEPOINT job")
        try:
            self._do_work(db, job, batch)
        except DISK_ERRORS:
            raise
        except BaseException as error:
            if not connection.in_transaction:
                raise apsw.IOError("the transaction was lost") from error
            job.error = error
            db.undo("ROLLBACK" if is_first else "ROLLBACK TO job")
            if is_first:
                db.begin()
        if not connection.in_transaction:
            raise apsw.IOError("the transaction was lost")
        if not is_first:
            connection.execute("RELEASE job")

    def _do_work(self, db: Db, job: Job, batch: Batch) -> None:
        if job.app is None:
            job.result = job.work(SqliteSystemTx(db))
            db.lasting.forget()
            return
        tx = SqliteTx(db, job.app, self._clock, db.lasting)
        job.result = job.work(tx)
        if tx.write_changes():
            batch.changed.add(job.app)
        for session_id, events in tx.appended.items():
            batch.appended.setdefault((job.app, session_id), []).extend(events)

    def _hand_over(self, batch: Batch, failure: StoreUnavailable | None = None) -> None:
        if failure is not None:
            batch.fail(failure)
        if not batch.jobs:
            return
        try:
            self._loop.call_soon_threadsafe(self._deliver, batch.commits(), batch.changed, batch.jobs)
        except RuntimeError:  # the event loop is gone, and the callers with it
            return

    def _use_connection(self, connection: apsw.Connection) -> None:
        self.checkpoints.follow(connection)
        self._db = Db(connection, self._queries)

    def _drop_connection(self, error: Exception) -> None:
        self.reason = f"{self._path}: {error}"
        log.error("the store cannot be written: %s", self.reason)
        self.checkpoints.stop()
        db, self._db = self._db, None
        if db is not None:
            with contextlib.suppress(*DISK_ERRORS):
                db.connection.close(True)

    def _probe(self) -> None:
        """Open a new connection, and use it only once it has really written something."""
        try:
            connection = open_writer(self._path)
        except (*DISK_ERRORS, StoreUnavailable) as error:
            self.reason = f"{self._path}: {error}"
            return
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.pragma("user_version", connection.pragma("user_version"))
            connection.execute("COMMIT")
        except DISK_ERRORS as error:
            self.reason = f"{self._path}: {error}"
            with contextlib.suppress(*DISK_ERRORS):
                connection.close(True)
            return
        with contextlib.suppress(*DISK_ERRORS):  # a failed sync may have lost what the log seems to hold
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        self._use_connection(connection)
        self.reason = None
        log.warning("the store can be written again")
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._deliver, [Commit("", "", ())], {""}, [])


def _not_written(reason: str | None) -> str:
    return f"the store cannot be written now ({reason}); nothing was recorded, try again later"
