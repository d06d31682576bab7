"""How much of the disk a session's folders take: implements core's `FolderSizes`.

Counted is what the file system has given away, so that a file with holes counts for what it holds, and one
that reserves space for what it keeps from others. A file with several names counts once.
"""

import asyncio
import contextlib
import itertools
import os
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from clawdforge.drivers.folders.homes import SHADOWS, check_id
from clawdforge.drivers.folders.tree_walk import Limits, TreeTooLarge, open_folder, walk_tree
from clawdforge.wire.disk import DiskForm

LIMITS: Final = Limits(entries=1_000_000, depth=256, seconds=20.0)
"""A larger tree counts for what was seen of it by then."""
BLOCK: Final = 512  # the unit of st_blocks, whatever the file system's own is


class SessionSizes:
    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        # A thread of its own: a tree that takes long must not use up those that everybody shares.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="disk")

    async def measure(self, session_id: str, workspace: str | None) -> dict[DiskForm, int]:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self.measure_now, session_id, workspace)

    def measure_now(self, session_id: str, workspace: str | None) -> dict[DiskForm, int]:
        """The same, for whoever may block."""
        own = check_id(session_id)
        return {
            DiskForm.HOMES: tree_bytes(self._data_dir / "homes" / own),
            DiskForm.HOME_COPIES: own_tree_bytes(self._data_dir / "copies" / own),
            DiskForm.SNAPSHOTS: own_tree_bytes(self._data_dir / SHADOWS / own),
            DiskForm.WORKSPACES: (
                0 if workspace is None else tree_bytes(self._data_dir / "workspaces" / check_id(workspace))
            ),
        }


def tree_bytes(folder: Path, limits: Limits = LIMITS) -> int:
    """What a tree takes, 0 where there is none. Follows no link, and waits for nothing."""
    total, seen = 0, set[tuple[int, int]]()
    try:
        with open_folder(folder) as root:
            total = os.fstat(root).st_blocks
            for found in walk_tree(root, limits, _leave_out, any_links=True):
                info = found.info
                if info.st_nlink > 1 and found.is_file:
                    if (info.st_dev, info.st_ino) in seen:
                        continue
                    seen.add((info.st_dev, info.st_ino))
                total += info.st_blocks
    except (FileNotFoundError, NotADirectoryError, TreeTooLarge):
        pass
    return total * BLOCK


def own_tree_bytes(folder: Path, limits: Limits = LIMITS) -> int:
    """The same of a tree in which only the server writes: nobody swaps names there, so it is far quicker."""
    try:
        info = os.lstat(folder)
    except FileNotFoundError:
        return 0
    if not stat.S_ISDIR(info.st_mode):
        return 0
    total, seen, folders = info.st_blocks, set[tuple[int, int]](), [str(folder)]
    left, deadline = limits.entries, time.monotonic() + limits.seconds
    while folders and left and time.monotonic() < deadline:
        with contextlib.suppress(FileNotFoundError), os.scandir(folders.pop()) as entries:
            for entry in itertools.islice(entries, left):
                left -= 1
                total += _count(entry, seen, folders)
    return total * BLOCK


def _count(entry: os.DirEntry[str], seen: set[tuple[int, int]], folders: list[str]) -> int:
    try:
        info = entry.stat(follow_symlinks=False)
    except FileNotFoundError:  # an old copy goes at any time
        return 0
    if stat.S_ISDIR(info.st_mode):
        folders.append(entry.path)
    elif info.st_nlink > 1:
        if (info.st_dev, info.st_ino) in seen:
            return 0
        seen.add((info.st_dev, info.st_ino))
    return info.st_blocks


def _leave_out(path: str, why: str) -> None:
    """What cannot be read, or belongs to another file system, is not counted."""
