"""The Postgres store of one node: a thread that writes, a few ways to read, and a way to other nodes."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final, TypeVar, cast

import asyncpg

from clawdforge.core.clock import Clock
from clawdforge.core.histogram import Histogram
from clawdforge.core.models.rows import Commit
from clawdforge.core.pacing.computing import Computing
from clawdforge.core.ports import SystemTx, SystemView, Tx, View
from clawdforge.stores.postgres.advice import advise
from clawdforge.stores.postgres.link import LOST, Link, describe
from clawdforge.stores.postgres.migrations import migrate
from clawdforge.stores.postgres.moved import fit_to_folder
from clawdforge.stores.postgres.passage import check_passage
from clawdforge.stores.postgres.queries import PgQueries
from clawdforge.stores.postgres.readers import PgReaders
from clawdforge.stores.postgres.relief import Relief, relieve
from clawdforge.stores.postgres.rows import PgTx, PgView, choose_rise
from clawdforge.stores.postgres.signals import Signals
from clawdforge.stores.postgres.writer import PgWriter
from clawdforge.stores.sqlite.job_queue import Job, tell
from clawdforge.stores.sqlite.job_times import COMMIT_CLASSES
from clawdforge.stores.sqlite.packing import choose_slice
from clawdforge.stores.sqlite.statements import Statements
from clawdforge.stores.sqlite.system import SqliteSystemView
from clawdforge.wire.errors import StoreUnavailable

log = logging.getLogger(__name__)
T = TypeVar("T")
PAUSE_SECS: Final = 5.0
PAUSE_PART: Final = 0.4
"""So long a server may stop in the middle of a transaction, or for such a part of a lease if that is less. It
keeps others from writing meanwhile, and they must not miss their beats for it."""
OTHERS: Final = (
    "SELECT 1 FROM sessions WHERE folder <> $1 UNION ALL"
    " SELECT 1 FROM members WHERE state <> 'dead' AND folder <> $1 LIMIT 1"
)
OWN: Final = "UPDATE sessions SET folder = $1 WHERE own_cwd = 1 AND folder IS NULL"


class PostgresStore:
    """Made by `open`, in the event loop that will use it."""

    def __init__(
        self,
        url: str,
        link: Link,
        clock: Clock,
        pause: float = PAUSE_SECS,
        rise: Callable[[], int] = choose_rise,
    ) -> None:
        queries = PgQueries()
        self._version = ".".join(map(str, link.server_version))
        self._listeners: list[Callable[[Commit], None]] = []
        self._change_listeners: list[Callable[[str], None]] = []
        self._checkpoint_times = Histogram(COMMIT_CLASSES)  # Postgres makes them by itself
        self._signals = Signals(url, self._deliver_told)
        self._readers = PgReaders(url, queries)
        self._long_reads = Computing()  # apart from what is parsed: a search waits for Postgres
        self._writer = PgWriter(partial(Link, url, pause=pause), link, queries, clock, self._deliver, rise)
        self._relief = Relief(partial(Link, url, pause), self._writer, pause)

    @classmethod
    async def open(
        cls,
        url: str,
        clock: Clock,
        remembered: int = 0,
        data_dir: Path | None = None,
        folder: str = "",
        lease: float = PAUSE_SECS / PAUSE_PART,
        rise: Callable[[], int] = choose_rise,
    ) -> "PostgresStore":
        """Open the store in a database, making its tables if they are missing.

        `remembered` is how many sessions have left folders on this machine: with them, a database without
        tables is the wrong one. Paths are fitted to where `data_dir` is now, unless another `folder` was
        ever used with the database: then some of them are its. `rise` says how far a claim raises a fence.
        """
        pause = min(PAUSE_SECS, PAUSE_PART * lease)
        link = await asyncio.to_thread(_prepare, url, clock, remembered, data_dir, folder, pause)
        return cls(url, link, clock, pause, rise)

    async def read(self, app: str, work: Callable[[View], T]) -> T:
        return await self._read(lambda db: work(PgView(db, app)), work)

    async def read_long(self, app: str, work: Callable[[View], T]) -> T:
        def read() -> T:
            return self._readers.read_now(lambda db: work(PgView(db, app)))

        return await self._checked(self._long_reads.run(app, read))

    def charge_to(self, charge: Callable[[str, float], None]) -> None:
        self._long_reads.charge_to(charge)

    async def read_system(self, work: Callable[[SystemView], T]) -> T:
        return await self._read(lambda db: work(SqliteSystemView(db)), work)

    async def write(self, app: str, work: Callable[[Tx], T]) -> T:
        result: T = await self._writer.submit(app, work)
        return result

    async def write_slice(self, app: str, work: Callable[[Tx], T]) -> T:
        result: T = await self._writer.submit(app, work, is_slice=True)
        return result

    async def write_system(self, work: Callable[[SystemTx], T]) -> T:
        result: T = await self._writer.submit(None, work)
        return result

    async def pack(self, app: str, session_id: str, through: int) -> bool:
        chosen = await self._read(lambda db: choose_slice(db, app, session_id, through), choose_slice)
        if chosen is None:
            return False
        packed = await asyncio.to_thread(chosen.pack)
        return await self.write(app, lambda tx: cast(PgTx, tx).place_pack(chosen, packed))

    @property
    def peers(self) -> Signals:
        return self._signals

    def listen(self, listener: Callable[[Commit], None]) -> None:
        self._listeners.append(listener)

    def listen_for_changes(self, listener: Callable[[str], None]) -> None:
        self._change_listeners.append(listener)

    @property
    def commit_times(self) -> Histogram:
        return self._writer.times

    @property
    def job_times(self) -> Histogram:
        return self._writer.job_times.histogram

    @property
    def checkpoint_times(self) -> Histogram:
        return self._checkpoint_times

    def health(self) -> str | None:
        return self._writer.reason

    def version(self) -> str:
        return f"Postgres {self._version}"

    async def close(self) -> None:
        await self._signals.close()
        await self._readers.close()
        await self._writer.close()
        await asyncio.to_thread(self._relief.close)

    async def _read(self, work: Callable[[Statements], T], of: Callable[..., T]) -> T:
        return await self._checked(self._readers.read(work, of))

    async def _checked(self, reading: Awaitable[T]) -> T:
        try:
            return await reading
        except StoreUnavailable:
            self._writer.check()  # its connection may be gone as well, and nobody has noticed
            raise

    def _deliver(self, commits: list[Commit], changed: set[str], jobs: list[Job]) -> None:
        self._signals.note(commits, changed)
        self._tell(commits, changed, jobs)

    def _deliver_told(self, commits: list[Commit], changed: set[str]) -> None:
        """What other nodes have committed, who say only where."""
        self._tell(commits, changed, [])

    def _tell(self, commits: list[Commit], changed: set[str], jobs: list[Job]) -> None:
        calls: list[Callable[[], None]] = [
            partial(listener, commit) for commit in commits for listener in self._listeners
        ]
        calls += [partial(listener, app) for app in changed for listener in self._change_listeners]
        tell(calls, jobs)


def _prepare(
    url: str, clock: Clock, remembered: int, data_dir: Path | None, folder: str, pause: float
) -> Link:
    try:
        link = Link(url, pause=pause)
        try:
            check_passage(url, link)
            relieve(link, pause, link.backend)
            migrate(link, clock, remembered)
            moved = 0
            if data_dir is not None and not link.fetch(OTHERS, (folder,)):
                moved = fit_to_folder(link, data_dir.resolve())
                link.run(OWN, (folder,))
        except BaseException:
            link.close()
            raise
    except (*LOST, asyncpg.PostgresError) as error:
        raise StoreUnavailable(
            f"the database cannot be used: {describe(error)}; {advise(error)}; `clawdforge doctor` says more"
        ) from error
    if moved:
        log.warning("the data folder is at another place than before; %d paths were changed", moved)
    return link
