"""Durable backends. `open_store` opens the one in the data folder."""

from pathlib import Path

from clawdforge.core.model import Clock
from clawdforge.stores.sqlite.store import SqliteStore


async def open_store(data_dir: Path, clock: Clock) -> SqliteStore:
    """Open the store of a data folder, making both if they are missing.

    The caller holds the folder's lock.
    """
    return await SqliteStore.open(data_dir, clock)
