"""Writes a tree below an empty folder, by descriptors: whatever its list says, nothing lands outside.

The list may come from an archive that a stranger made. A path may not leave the folder or go through a link,
nothing is written twice, and no owner, device or special mode is taken over.
"""

import os
from types import TracebackType
from typing import Final, Self

from clawdforge.drivers.folders.tree_walk import CREATE, FOLDER

CONTINUE: Final = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
LATEST: Final = 1 << 62
"""In nanoseconds. A file system takes no time much later than this."""


class BadPath(Exception):
    """A path that must not be written; the message says why."""


def split_path(path: str, deepest: int) -> tuple[str, ...]:
    """The names that lead to a file. Raises BadPath for one that is not plainly below the folder."""
    parts = tuple(path.split("/"))
    if not path or "\0" in path or any(part in ("", ".", "..") for part in parts):
        raise BadPath(f"{path[:200]!r} is not a path below the folder")
    if len(parts) > deepest:
        raise BadPath(f"{path[:200]!r} is more than {deepest} folders deep")
    return parts


def is_plain_path(path: str, deepest: int = 64) -> bool:
    """Whether `split_path` would take it, for those who do without what is named otherwise."""
    try:
        split_path(path, deepest)
    except BadPath:
        return False
    return True


class TreeWriter:
    """The folders that lead to the last path stay open, since the next one is mostly beside it."""

    def __init__(self, root: int, deepest: int) -> None:
        self._root = root
        self._deepest = deepest
        self._chain: list[tuple[str, int]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._leave(0)

    def add_folder(self, path: str) -> None:
        """Make a folder and those above it. One that is there already is fine."""
        self._enter(split_path(path, self._deepest), make=True)

    def create_file(self, path: str) -> int:
        """The descriptor of a new file, which the caller closes. Fails if there is something of that name."""
        *folders, name = split_path(path, self._deepest)
        return os.open(name, CREATE, 0o600, dir_fd=self._enter(folders, make=True))

    def continue_file(self, path: str) -> int:
        """The descriptor of a file that was begun, at its end; the caller closes it."""
        *folders, name = split_path(path, self._deepest)
        return os.open(name, CONTINUE, dir_fd=self._enter(folders, make=False))

    def add_link(self, path: str, target: str) -> None:
        *folders, name = split_path(path, self._deepest)
        os.symlink(target, name, dir_fd=self._enter(folders, make=True))

    def finish_folder(self, path: str, mode: int, mtime: int | None = None) -> None:
        """Give a folder its mode and time, when everything is in it."""
        finish(self._enter(split_path(path, self._deepest), make=False), mode, mtime)

    def _enter(self, parts: "list[str] | tuple[str, ...]", *, make: bool) -> int:
        same = 0
        while same < min(len(parts), len(self._chain)) and self._chain[same][0] == parts[same]:
            same += 1
        self._leave(same)
        for part in parts[same:]:
            parent = self._chain[-1][1] if self._chain else self._root
            try:
                folder = os.open(part, FOLDER, dir_fd=parent)
            except FileNotFoundError:
                if not make:
                    raise
                os.mkdir(part, 0o700, dir_fd=parent)
                folder = os.open(part, FOLDER, dir_fd=parent)
            self._chain.append((part, folder))
        return self._chain[-1][1] if self._chain else self._root

    def _leave(self, depth: int) -> None:
        while len(self._chain) > depth:
            os.close(self._chain.pop()[1])


def finish(fd: int, mode: int, mtime: int | None) -> None:
    """Set mode and time of what was written; setuid and the like are dropped."""
    os.fchmod(fd, mode & 0o777)
    if mtime is not None:
        mtime = min(max(mtime, 0), LATEST)
        os.utime(fd, ns=(mtime, mtime))
