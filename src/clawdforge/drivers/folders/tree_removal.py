"""Deletes trees by descriptors, whatever is in them: links, read-only folders, any depth, millions of files.

No link is followed and no path is joined. A folder that lies deep is moved up to the top of the tree and
emptied there, so that a few descriptors are enough for any depth. What a crash cuts off can be continued.
"""

import asyncio
import contextlib
import errno
import logging
import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from clawdforge.drivers.folders.tree_walk import FOLDER

log = logging.getLogger(__name__)
SLICE: Final = 2000
DEPTH: Final = 32
MAX_STEPS: Final = 100_000
"""An agent that still runs could make files faster than they are deleted."""
HOLD: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
MAYBE_FOLDER: Final = frozenset({errno.EISDIR, errno.EPERM, errno.EACCES})


def delete_tree(path: Path) -> None:
    """Delete a tree. What cannot be deleted stays, and the log says why. Blocks for as long as it takes."""
    removal = TreeRemoval(path)
    while not removal.step():
        pass


async def delete_tree_in_slices(path: Path) -> None:
    """The same in threads, some thousand files at a time: a huge tree must not keep a thread from others."""
    removal = TreeRemoval(path)
    while not await asyncio.to_thread(removal.step):
        pass


@dataclass(slots=True)
class _Level:
    """A folder that is being emptied."""

    name: str
    folder: int
    entries: "Iterator[os.DirEntry[str]]"
    opened: contextlib.ExitStack
    keeps: bool = False  # something in it could not be removed


class TreeRemoval:
    """The removal of one tree, in steps. It never raises: the server starts even if something cannot go."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._steps = 0
        self._removed = 0
        self._problem = "it keeps growing"

    def step(self, most: int = SLICE) -> bool:
        """Delete about `most` files. True when there is nothing more to do."""
        self._steps += 1
        self._removed = 0
        try:
            if not stat.S_ISDIR(self._path.lstat().st_mode):
                self._path.unlink()
                return True
            with _open_unlocked(None, str(self._path)) as top:
                self._empty(top, most)
            with contextlib.suppress(OSError):  # not empty yet
                self._path.rmdir()
                return True
        except FileNotFoundError:
            return True
        except OSError as error:
            self._problem = f"{self._path.name}: {error.strerror or error}"
        if self._removed and self._steps < MAX_STEPS:
            return False
        log.warning("%s could not be deleted, remove it by hand; %s", self._path, self._problem)
        return True

    def _empty(self, top: int, most: int) -> None:
        levels = [_enter(top, ".")]
        try:
            while levels and most > 0:
                level = levels[-1]
                entry = next(level.entries, None)
                if entry is None:
                    self._leave(levels)
                    continue
                most -= 1
                try:
                    if _unlink(level.folder, entry.name):
                        self._removed += 1
                    elif len(levels) <= DEPTH:
                        levels.append(_enter(level.folder, entry.name))
                    else:
                        _move_up(level.folder, entry.name, top)
                        self._removed += 1
                except FileNotFoundError:
                    continue
                except OSError as error:
                    self._note(level, entry.name, error)
        finally:
            for level in levels:
                level.opened.close()

    def _leave(self, levels: list[_Level]) -> None:
        """The innermost folder has been gone through: remove it, if nothing is left in it."""
        done = levels.pop()
        done.opened.close()
        if not levels:
            return
        levels[-1].keeps = levels[-1].keeps or done.keeps
        if not done.keeps:
            try:
                os.rmdir(done.name, dir_fd=levels[-1].folder)
                self._removed += 1
            except OSError as error:
                self._note(levels[-1], done.name, error)

    def _note(self, level: _Level, name: str, error: OSError) -> None:
        level.keeps = True
        self._problem = f"{name!r} in it: {error.strerror or error}"


def _unlink(folder: int, name: str) -> bool:
    """Whether it is gone now. A folder is not."""
    try:
        os.unlink(name, dir_fd=folder)
    except OSError as error:
        if error.errno not in MAYBE_FOLDER:
            raise
        if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            return False
        raise
    return True


def _enter(parent: int, name: str) -> _Level:
    with contextlib.ExitStack() as opening:
        folder = opening.enter_context(_open_unlocked(parent, name))
        if os.fstat(folder).st_dev != os.fstat(parent).st_dev:
            raise OSError(errno.EXDEV, "another file system is mounted there")
        entries = opening.enter_context(os.scandir(folder))
        return _Level(name, folder, entries, opening.pop_all())


def _move_up(folder: int, name: str, top: int) -> None:
    with _open_unlocked(folder, name):  # a read-only folder cannot get another parent
        os.rename(name, f".{secrets.token_hex(8)}", src_dir_fd=folder, dst_dir_fd=top)


@contextlib.contextmanager
def _open_unlocked(parent: int | None, name: str) -> Iterator[int]:
    """A folder that we may empty. It may not even be readable, so its mode is changed by a mere handle."""
    held = os.open(name, HOLD, dir_fd=parent)
    try:
        if os.fstat(held).st_mode & 0o700 != 0o700:
            with contextlib.suppress(PermissionError):  # somebody else's: emptying it fails, and says so
                os.chmod(f"/proc/self/fd/{held}", 0o700)  # noqa: PTH101 - of a descriptor
        folder = os.open(".", FOLDER, dir_fd=held)
    finally:
        os.close(held)
    try:
        yield folder
    finally:
        os.close(folder)
