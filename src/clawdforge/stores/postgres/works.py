"""Runs the work of jobs over the statements it is given, and notes in their batch what comes of it."""

from collections import deque
from collections.abc import Callable, Iterable

import asyncpg

from clawdforge.core.clock import Clock
from clawdforge.stores.postgres.asked import Asked, Probe
from clawdforge.stores.postgres.gathered import Dependent, Gathered
from clawdforge.stores.postgres.link import LOST
from clawdforge.stores.postgres.plain_jobs import PlainJobs
from clawdforge.stores.postgres.rows import PgSystemTx, PgTx
from clawdforge.stores.postgres.statements import PgDb
from clawdforge.stores.sqlite.job_queue import Job
from clawdforge.stores.sqlite.packs import DAMAGED
from clawdforge.stores.sqlite.statements import Statements
from clawdforge.stores.sqlite.writer import Batch
from clawdforge.wire.errors import SessionDamaged


class Works:
    def __init__(self, clock: Clock, rise: Callable[[], int]) -> None:
        self._plain = PlainJobs()
        self._refused: set[int] = set()  # jobs that are still to be run; of one that is turned away, for ever
        self._clock = clock
        self._rise = rise

    def is_plain(self, job: Job) -> bool:
        """What is done for all apps is no ordinary job."""
        return job.app is None or id(job) in self._refused or self._plain.is_plain(job.work)

    def refuse(self, jobs: Iterable[Job]) -> None:
        """What they do together was refused: each is to find out by itself what is wrong with it."""
        for job in jobs:
            job.result = job.error = None
            self._refused.add(id(job))

    def count_plain(self, job: Job) -> None:
        """It is run in the plain way now."""
        self._refused.discard(id(job))
        self._plain.count(job.work)

    def ask(self, db: PgDb, jobs: Iterable[Job]) -> list[Asked]:
        """What each of them asks for first. They are run for that until they do, and once more in earnest.

        Those of an app share what runs them: nothing is found, so nothing is kept.
        """
        found, probe = [], Probe(db.queries, db.unpack)
        runs: dict[str, PgTx] = {}
        for job in jobs:
            if not self.is_plain(job):
                app = job.app or ""
                run = runs.get(app) or runs.setdefault(app, PgTx(probe, app, self._clock, self._rise))
                try:
                    job.work(run)
                except Asked as asked:
                    found.append(asked)
                except BaseException:  # noqa: BLE001, S110 - it comes again when the job is run
                    pass
        return found

    def run_gathered(self, gathered: Gathered, left: deque[Job], batch: Batch) -> bool:
        """Move a job to its batch. False when it has to stay: it can be run when the batch is written."""
        job = left.popleft()
        gathered.begin_job(job.app or "")
        try:
            self.run(gathered, job, batch)
        except (*LOST, asyncpg.PostgresError):
            batch.jobs.append(job)
            raise
        except Dependent:
            gathered.undo_job()
            if not batch.jobs:
                self._plain.note(job.work)
            left.appendleft(job)
            return False
        except BaseException as error:  # noqa: BLE001 - it is the caller's
            job.error = SessionDamaged() if isinstance(error, DAMAGED) else error
            gathered.undo_job()
        else:
            self._plain.forget(job.work)
        batch.jobs.append(job)
        return True

    def run(self, db: Statements, job: Job, batch: Batch) -> None:
        if job.app is None:
            job.result = job.work(PgSystemTx(db))
            return
        tx = PgTx(db, job.app, self._clock, self._rise)
        job.result = job.work(tx)
        if tx.write_changes():
            batch.changed.add(job.app)
        for session_id, events in tx.appended.items():
            batch.appended.setdefault((job.app, session_id), []).extend(events)
