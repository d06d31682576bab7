"""The real SQLite store's rows and SQL behind the store port, with commits at moments that chance decides.

As in the real store, all waiting jobs are one commit, a commit can be seen before it is announced, and
announcements come in order. Only the thread is left out.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast

from clawdforge.core.histogram import Histogram
from clawdforge.core.models.events import StoredEvent
from clawdforge.core.models.rows import Commit
from clawdforge.core.ports import SystemTx, SystemView, Tx, View
from clawdforge.stores.sqlite.packing import choose_slice
from clawdforge.stores.sqlite.system import SqliteSystemTx, SqliteSystemView
from clawdforge.stores.sqlite.tx import SqliteTx
from clawdforge.stores.sqlite.view import SqliteView
from clawdforge.wire.errors import StoreUnavailable
from proofs.simulation.world import World

T = TypeVar("T")


@dataclass(slots=True)
class Job:
    app: str | None
    work: Callable[[Any], Any]
    future: asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None

    def resolve(self) -> None:
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


def _do_whole(work: Callable[[Any], T], tx: SqliteTx) -> T:
    result = work(tx)
    tx.write_changes()
    return result


class SimStore:
    """Belongs to one life of the server; the database outlives it."""

    commit_times = Histogram((1.0,))
    job_times = Histogram((1.0,))
    checkpoint_times = Histogram((1.0,))

    def __init__(self, world: World) -> None:
        self._world = world
        self._db = world.disk.db
        self._listeners: list[Callable[[Commit], None]] = []
        self._jobs: list[Job] = []
        self._announcements: list[tuple[list[Commit], list[Job]]] = []
        self._is_due = False
        self._is_down = False

    async def read(self, app: str, work: Callable[[View], T]) -> T:
        return await self._read(lambda: work(SqliteView(self._db, app)))

    async def read_long(self, app: str, work: Callable[[View], T]) -> T:
        return await self.read(app, work)

    def charge_to(self, charge: Callable[[str, float], None]) -> None:
        """Nothing takes any time here."""

    async def read_system(self, work: Callable[[SystemView], T]) -> T:
        return await self._read(lambda: work(SqliteSystemView(self._db)))

    async def write(self, app: str, work: Callable[[Tx], T]) -> T:
        result: T = await self._submit(app, work)
        return result

    async def write_slice(self, app: str, work: Callable[[Tx], T]) -> T:
        return await self.write(app, work)

    async def write_system(self, work: Callable[[SystemTx], T]) -> T:
        result: T = await self._submit(None, work)
        return result

    async def pack(self, app: str, session_id: str, through: int) -> bool:
        chosen = await self._read(lambda: choose_slice(self._db, app, session_id, through))
        if chosen is None:
            return False
        packed = chosen.pack()
        return await self.write(app, lambda tx: cast(SqliteTx, tx).place_pack(chosen, packed))

    @property
    def peers(self) -> None:
        """One life at a time."""

    def listen(self, listener: Callable[[Commit], None]) -> None:
        self._listeners.append(listener)

    def listen_for_changes(self, listener: Callable[[str], None]) -> None:
        """No part of a simulated life follows a list."""

    def health(self) -> str | None:
        return "down" if self._is_down else None

    def version(self) -> str:
        return "simulated"

    async def close(self) -> None: ...

    async def _read(self, work: Callable[[], T]) -> T:
        """The real one answers without letting others run, and so does this one."""
        if self._world.strikes("read fails"):
            raise StoreUnavailable("the store cannot be read (simulated)", retry_after=1.0)
        return work()

    def _submit(self, app: str | None, work: Callable[[Any], Any]) -> asyncio.Future[Any]:
        job = Job(app, work, self._world.loop.create_future())
        self._jobs.append(job)
        self._plan_commit()
        return job.future

    def _plan_commit(self) -> None:
        if self._jobs and not self._is_due:
            self._is_due = True
            self._world.loop.call_later(self._world.draw_delay(), self._commit)

    def _commit(self) -> None:
        world, jobs, self._jobs = self._world, self._jobs, []
        self._is_due = False
        if self._is_down or world.strikes("store refuses"):
            self._fail(jobs)
            return
        commits = self._write(jobs)
        if world.strikes("store in doubt"):
            self._fail(jobs)
            return
        world.note(
            "commit:",
            *(f"{c.session_id[:6]} {[e.type for e in c.events]}" for c in commits),
            len(jobs),
            "jobs",
        )
        self._announce(commits, jobs)
        self._plan_commit()

    def _write(self, jobs: list[Job]) -> list[Commit]:
        """All jobs as one commit; one that raises undoes only itself."""
        appended: dict[tuple[str, str], list[StoredEvent]] = {}
        for job in jobs:
            try:
                if job.app is None:
                    job.result = self._db.attempt(partial(job.work, SqliteSystemTx(self._db)))
                else:
                    tx = SqliteTx(self._db, job.app, self._world)
                    job.result = self._db.attempt(partial(_do_whole, job.work, tx))
                    for session_id, events in tx.appended.items():
                        appended.setdefault((job.app, session_id), []).extend(events)
            except Exception as error:  # whatever it is, it is for the caller
                job.error = error
        return [Commit(app, session, tuple(events)) for (app, session), events in appended.items()]

    def _fail(self, jobs: list[Job]) -> None:
        """Nobody is told what was written. The store is away for a while, and then says that it is back."""
        for job in jobs:
            job.result, job.error = None, StoreUnavailable("not written (simulated)", retry_after=1.0)
        self._announce([], jobs)
        if not self._is_down:
            self._is_down = True
            self._world.loop.call_later(self._world.draw_delay() + 0.05, self._heal)
        self._plan_commit()

    def _heal(self) -> None:
        self._is_down = False
        self._world.note("the store is back")
        self._announce([Commit("", "", ())], [])

    def _announce(self, commits: list[Commit], jobs: list[Job]) -> None:
        """A loop keeps the order of what its thread hands over, whatever order it gives to the rest."""
        self._announcements.append((commits, jobs))
        self._world.loop.call_later(self._world.draw_delay() / 4, self._deliver)

    def _deliver(self) -> None:
        commits, jobs = self._announcements.pop(0)
        for commit in commits:
            for listener in self._listeners:
                listener(commit)
        for job in jobs:
            job.resolve()
