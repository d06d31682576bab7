"""Paths that are opened once: whatever takes their name afterwards is not what an agent gets.

An agent, or another in a folder around it, may replace a folder by a link between the moment it is looked at
and the moment it is mounted. So it is opened without following links, compared with the name it should have,
and mounted by its descriptor.
"""

import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self


class PathChanged(Exception):
    """A path leads somewhere else now: it, or a folder above it, was replaced by a link."""


class PathMissing(Exception):
    """There is nothing of that name."""


def open_real_path(path: Path) -> int:
    """A descriptor of exactly this path. Raises PathMissing, or PathChanged for a link in any part of it."""
    try:
        fd = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise PathMissing(str(path)) from error
    except NotADirectoryError as error:
        raise PathChanged(str(path)) from error
    # As texts: this is asked before every turn.
    if stat.S_ISLNK(os.fstat(fd).st_mode) or os.readlink(f"/proc/self/fd/{fd}") != str(path):  # noqa: PTH115
        os.close(fd)
        raise PathChanged(str(path))
    return fd


class HeldPaths:
    """Some paths, held open for the time of a `with` block."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = tuple(paths)
        self._fds: dict[Path, int] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for path in self._paths:
                self._fds[path] = open_real_path(path)
                stack.callback(os.close, self._fds[path])
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def fds(self) -> tuple[int, ...]:
        return tuple(self._fds.values())

    def fd_of(self, path: Path) -> int:
        return self._fds[path]

    @property
    def sources(self) -> Mapping[Path, str]:
        """For each path the name under which its descriptor can be opened, mounted or changed into."""
        return {path: f"/proc/self/fd/{fd}" for path, fd in self._fds.items()}
