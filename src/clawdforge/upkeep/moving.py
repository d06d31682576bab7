"""Brings the tables of a server up to date, and moves the rows of a data folder into a Postgres database."""

import asyncio
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from clawdforge.by_name import load
from clawdforge.core.clock import Clock
from clawdforge.core.ports import Store
from clawdforge.disk import sync_folder
from clawdforge.drivers.folders.homes import HomeFolders
from clawdforge.folder_lock import FolderLock
from clawdforge.stores import open_database, open_store
from clawdforge.stores.sqlite import migrations, snapshot
from clawdforge.stores.sqlite.connection import DISK_ERRORS
from clawdforge.upkeep.archive import Progress, UpkeepError, ignore_progress
from clawdforge.wire.errors import ForgeAPIError

MOVE: Final = "clawdforge.stores.postgres.moving:move_rows"
LOST: Final = "clawdforge.stores.postgres.link:ALL_ERRORS"
MOVED: Final = f"{snapshot.FILE}.moved"
FAILED: Final = (
    "Postgres cannot be used: {why}; run the command again when it can: what is there by then is compared"
)
INSTALL: Final = "run `pip install 'clawdforge[postgres]'` first: {name} is missing"


def bring_up_to_date(data_dir: Path, url: str | None, clock: Clock) -> str:
    """Make what tables are missing, with no server running on the folder; what the store is then."""

    async def run() -> str:
        count = len(HomeFolders(data_dir).names())
        opening = (
            open_store(data_dir, clock, count) if url is None else open_database(url, data_dir, clock, count)
        )
        store: Store = await opening
        version = store.version()
        await store.close()
        return version

    with _hold(data_dir):
        return asyncio.run(run())


def move_to_postgres(data_dir: Path, url: str, clock: Clock, report: Progress = ignore_progress) -> int:
    """How many rows were moved. The file stays there, under another name. No server may run on the folder."""
    path = data_dir / snapshot.FILE
    if not path.exists():
        raise UpkeepError(f"there is no database in {data_dir}; choose the folder with --data-dir")
    with _hold(data_dir):
        if snapshot.read_schema_version(path) != len(migrations.list_migrations()):
            raise UpkeepError(
                "the database in the folder is of another version; run `clawdforge migrate` without"
                " CLAWDFORGE_DATABASE_URL first"
            )
        try:
            move: Any = load(MOVE)
        except ModuleNotFoundError as error:
            raise UpkeepError(INSTALL.format(name=error.name)) from error
        snapshot.fit_copy(path, data_dir.resolve())  # which also brings the log into the file
        try:
            count: int = move(path, url, clock, report)
        except load(LOST) as error:
            raise UpkeepError(FAILED.format(why=str(error) or type(error).__name__)) from error
        path.rename(data_dir / MOVED)
        for name in ("wal", "shm"):  # those of the reading, with nothing in them
            (data_dir / f"{snapshot.FILE}-{name}").unlink(missing_ok=True)
        sync_folder(data_dir)
    return count


@contextlib.contextmanager
def _hold(data_dir: Path) -> Iterator[None]:
    try:
        lock = FolderLock.acquire(data_dir, "", os.getpid())
        try:
            yield
        finally:
            lock.release()
    except ForgeAPIError as error:
        raise UpkeepError(error.message) from error
    except DISK_ERRORS as error:
        raise UpkeepError(f"the database in {data_dir} cannot be read: {error}") from error
