"""Shows that nothing moved in a tree while it was copied, so that its agent need not stand still for it.

Each thing is looked at before and after. What has other times than before, has moved. Times are coarse, so of
what changed just before the copy the contents are compared too: each was the same before the last was
copied and after it, so that there was a moment in which the tree was as the copy has it.

A folder in which a name has come or gone since the copy began has a time of that moment or later. So only a
folder whose time is not clearly older is listed again; of any other, the names are those of the first look.
"""

import os
import zlib
from pathlib import Path
from typing import Final

from clawdforge.drivers.folders.home_manifest import LIMITS, Entry, Manifest, is_racy
from clawdforge.drivers.folders.tree_walk import Found, TreeTooLarge, open_folder, read_small_file, walk_tree

MOST_BYTES: Final = 1 << 22
"""Of contents that are compared, in a thread and without its lock. Where there are more, the agent is stopped
instead."""


class Moved(Exception):
    """Something is not as it was, or cannot be seen."""


class SecondLook:
    def __init__(self, most: int | None = None) -> None:
        """`most` is how many things may be copied only to see that they have moved, and not more than can be
        compared."""
        self._root: tuple[int, ...] = ()
        self._first: list[tuple[int, ...]] = []
        self._names: dict[str, list[str]] = {"": []}  # of what was found, by folder
        self._most = most
        self._bytes = 0

    def note_root(self, info: os.stat_result) -> None:
        """The first look at the folder itself, before it is listed."""
        self._root = _marks(info)

    def note(self, found: Found) -> None:
        """The first look at something, in the order of the walk. Moved where there is too much."""
        self._first.append(_marks(found.info))
        self._names[found.path.rpartition("/")[0]].append(found.name)
        if found.is_folder:
            self._names[found.path] = []
        self._bytes += 0 if found.is_folder else found.info.st_size
        if self._most is not None and (len(self._first) > self._most or self._bytes > MOST_BYTES):
            raise Moved("there is too much to look at it twice")

    def is_same(self, home: Path, copied: Manifest, skipped: frozenset[str]) -> bool:
        """Whether the tree is still what was copied."""
        left = MOST_BYTES
        expected = iter(zip(self._first, copied.entries, strict=True))

        def known(path: str, info: os.stat_result) -> list[str] | None:
            """The marks of all folders but the root were compared just before."""
            if is_racy(info, copied.taken_at) or not (path or _marks(info) == self._root):
                return None
            return self._names[path]

        try:
            with open_folder(home) as root:
                for found in walk_tree(root, LIMITS, _refuse, skipped=skipped, known=known):
                    marks, entry = next(expected, (None, None))
                    if entry is None or entry.path != found.path or marks != _marks(found.info):
                        return False
                    if is_racy(found.info, copied.taken_at) and not found.is_folder:
                        left -= found.info.st_size
                        if left < 0 or not _has_content(found, entry):
                            return False
        except (Moved, OSError, TreeTooLarge):
            return False
        return next(expected, None) is None


def _has_content(found: Found, entry: Entry) -> bool:
    if entry.kind == "l":
        return os.readlink(found.name, dir_fd=found.parent) == entry.target
    content = read_small_file(found.parent, found.name, entry.size + 1)
    return len(content) == entry.size and zlib.crc32(content) == entry.crc


def _marks(info: os.stat_result) -> tuple[int, ...]:
    return info.st_mode, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def _refuse(path: str, why: str) -> None:
    raise Moved(f"{path}: {why}")
