"""Waits until an agent has written its memory: until nothing has moved in its home for a while."""

import asyncio
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Final

from clawdforge.drivers.folders.home_manifest import LIMITS
from clawdforge.drivers.folders.tree_walk import TreeTooLarge, open_folder, walk_tree

MOST: Final = 10
"""So many times as long is waited for a home that goes on moving: an agent may write a log for ever."""


async def until_still(look: Callable[[], Hashable], secs: float, most: int = MOST) -> bool:
    """Look, wait `secs`, and look again, until both saw the same; False if they never did."""
    seen = await asyncio.to_thread(look)
    for _ in range(most):
        await asyncio.sleep(secs)
        now = await asyncio.to_thread(look)
        if now == seen:
            return True
        seen = now
    return False


def look_at(home: Path, skipped: frozenset[str]) -> Hashable:
    """What changes when anything below is written. A home that cannot be walked looks the same each time."""
    try:
        with open_folder(home) as root:
            return hash(
                tuple(
                    (found.path, found.info.st_size, found.info.st_mtime_ns)
                    for found in walk_tree(root, LIMITS, _skip, skipped=skipped)
                    if not found.is_folder
                )
            )
    except (OSError, TreeTooLarge):
        return None


def _skip(_path: str, _why: str) -> None:
    """What is no file is no memory."""
