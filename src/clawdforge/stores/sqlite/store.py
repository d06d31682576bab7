"""The SQLite store: one file, one writing thread, reads in the event loop, and long ones beside it."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

import apsw

from clawdforge.core.clock import Clock
from clawdforge.core.histogram import Histogram
from clawdforge.core.models.rows import Commit
from clawdforge.core.pacing.computing import Computing
from clawdforge.core.ports import SystemTx, SystemView, Tx, View
from clawdforge.folder import make_private_file, prepare_folder
from clawdforge.stores.sqlite.connection import DISK_ERRORS, open_writer
from clawdforge.stores.sqlite.job_queue import Job, tell
from clawdforge.stores.sqlite.migrations import migrate
from clawdforge.stores.sqlite.moved import fit_to_folder
from clawdforge.stores.sqlite.packing import choose_slice
from clawdforge.stores.sqlite.queries import Queries
from clawdforge.stores.sqlite.reader import Reader
from clawdforge.stores.sqlite.snapshot import FILE, check_integrity, copy_database, read_schema_version
from clawdforge.stores.sqlite.space import allow_shrinking
from clawdforge.stores.sqlite.system import SqliteSystemView
from clawdforge.stores.sqlite.tx import SqliteTx
from clawdforge.stores.sqlite.view import SqliteView
from clawdforge.stores.sqlite.writer import Writer
from clawdforge.wire.errors import StoreUnavailable

T = TypeVar("T")
log = logging.getLogger(__name__)


class SqliteStore:
    """Made by `open`, in the event loop that will use it."""

    def __init__(self, path: Path, connection: apsw.Connection, queries: Queries, clock: Clock) -> None:
        self.path = path
        self._queries = queries
        self._listeners: list[Callable[[Commit], None]] = []
        self._change_listeners: list[Callable[[str], None]] = []
        self._long_reads = Computing()  # apart from what is parsed: a search may wait for the disk
        self._reader = Reader(path, queries)
        self._long_reader = Reader(path, queries)
        self._writer = Writer(path, connection, queries, clock, self._deliver)

    @classmethod
    async def open(
        cls, data_dir: Path, clock: Clock, remembered: int = 0, *, packs: bool = True
    ) -> "SqliteStore":
        connection, path = await asyncio.to_thread(_prepare, data_dir, clock, remembered)
        queries = Queries(packs_early=packs)
        store = cls(path, connection, queries, clock)
        for reader in (store._reader, store._long_reader):
            # A reader that was opened at the start can still read when the disk is full.
            reader.read(lambda db: db.row("SELECT 1 FROM sqlite_schema", {}))
        return store

    async def read(self, app: str, work: Callable[[View], T]) -> T:
        return self._reader.read(lambda db: work(SqliteView(db, app)))

    async def read_long(self, app: str, work: Callable[[View], T]) -> T:
        return await self._long_reads.run(
            app, lambda: self._long_reader.read(lambda db: work(SqliteView(db, app)))
        )

    def charge_to(self, charge: Callable[[str, float], None]) -> None:
        self._long_reads.charge_to(charge)

    async def read_system(self, work: Callable[[SystemView], T]) -> T:
        return self._reader.read(lambda db: work(SqliteSystemView(db)))

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
        chosen = self._reader.read(lambda db: choose_slice(db, app, session_id, through))
        if chosen is None:
            return False
        packed = await asyncio.to_thread(chosen.pack)
        return await self.write(app, lambda tx: cast(SqliteTx, tx).place_pack(chosen, packed))

    def listen(self, listener: Callable[[Commit], None]) -> None:
        self._listeners.append(listener)

    def listen_for_changes(self, listener: Callable[[str], None]) -> None:
        self._change_listeners.append(listener)

    @property
    def peers(self) -> None:
        """Only one server uses a file."""

    @property
    def commit_times(self) -> Histogram:
        return self._writer.times

    @property
    def job_times(self) -> Histogram:
        return self._writer.job_times.histogram

    @property
    def checkpoint_times(self) -> Histogram:
        return self._writer.checkpoints.times

    def health(self) -> str | None:
        return self._writer.reason

    def version(self) -> str:
        return f"SQLite {apsw.sqlite_lib_version()}"

    async def close(self) -> None:
        # First: the last connection to close writes the log back into the database.
        self._reader.close()
        await asyncio.to_thread(self._long_reader.close)
        await self._writer.close()

    async def backup(self, path: Path) -> None:
        """Copy one consistent state of the database in use. The copy appears when it is complete."""
        await asyncio.to_thread(copy_database, self.path, path)

    async def integrity(self) -> list[str]:
        """The defects of the file; an empty list if it is sound."""
        return await asyncio.to_thread(check_integrity, self.path)

    def _deliver(self, commits: list[Commit], changed: set[str], jobs: list[Job]) -> None:
        calls: list[Callable[[], None]] = [
            partial(listener, commit) for commit in commits for listener in self._listeners
        ]
        calls += [partial(listener, app) for app in changed for listener in self._change_listeners]
        tell(calls, jobs)


def _prepare(data_dir: Path, clock: Clock, remembered: int) -> tuple[apsw.Connection, Path]:
    path = prepare_folder(data_dir) / FILE
    if remembered and (not path.exists() or read_schema_version(path) == 0):
        raise StoreUnavailable(
            f"{path} is missing or empty, but the folder holds what agents remember of {remembered} sessions."
            " Put the database back, or restore a backup into another folder with `clawdforge restore`. To"
            " begin anew, move this folder away or choose another with --data-dir. Nothing was changed"
        )
    make_private_file(path)
    try:
        connection = open_writer(path)
        try:
            migrate(connection, clock)
            moved = fit_to_folder(connection, path.parent)
            allow_shrinking(connection)
        except BaseException:
            connection.close(True)
            raise
    except DISK_ERRORS as error:
        raise StoreUnavailable(
            f"{path} cannot be opened: {error}; free some space, look after the disk, or choose another"
            " folder with --data-dir"
        ) from error
    if moved:
        log.warning("the data folder is at another place than before; %d paths were changed", moved)
    return connection, path
