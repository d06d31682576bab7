"""Durable backends. `open_store` gives the one that the data folder holds."""

from pathlib import Path

from clawdforge.core.model import Clock
from clawdforge.stores.sqlite.store import SqliteStore


async def open_store(data_dir: Path, clock: Clock) -> SqliteStore:
    """The store of a data folder; makes both where they are missing. The caller holds the folder's lock."""
    return await SqliteStore.open(data_dir, clock)
