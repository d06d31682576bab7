"""Durable backends. `open_store` opens the one in the data folder."""

from pathlib import Path

from clawdforge.core.model import Clock
from clawdforge.stores.sqlite.store import SqliteStore


async def open_store(data_dir: Path, clock: Clock, remembered: int = 0) -> SqliteStore:
    """Open the store of a data folder, making both if they are missing.

    The caller holds the folder's lock. `remembered` is how many sessions have left folders there: with them,
    a store that is missing was lost, and is not made anew.
    """
    return await SqliteStore.open(data_dir, clock, remembered)
