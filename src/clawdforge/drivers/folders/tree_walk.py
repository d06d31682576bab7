"""Walks a tree that an agent owns, by descriptors: follows no link, waits for nothing, and is bounded.

An agent may swap any name in its home or workspace for a link, a FIFO or a device at any moment. So nothing
here joins paths: each folder is opened inside the one above it, and only if it is one. What was opened stays
what it was, whatever takes its name.
"""

import contextlib
import errno
import itertools
import os
import stat
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
KEPT: Final = (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)
CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class TreeTooLarge(Exception):
    """The walk ended early; the message says which limit it met."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How far a walk goes. Each level of depth costs a descriptor."""

    entries: int
    depth: int
    seconds: float


class Found(NamedTuple):
    """A folder, a regular file or a link. `parent` is open until the walk goes on."""

    path: str
    name: str
    parent: int
    info: os.stat_result

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.info.st_mode)

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.info.st_mode)


LeaveOut = Callable[[str, str], None]
"""Is told the path of something that cannot be taken, and why."""

KnownNames = Callable[[str, os.stat_result], Sequence[str] | None]
"""Is asked before a folder is listed, with its path below the root, which itself is "", and how it was found:
the names in it if they are known, without those that are skipped."""


def walk_tree(
    root: int,
    limits: Limits,
    leave_out: LeaveOut,
    *,
    skipped: Collection[str] = (),
    any_links: bool = False,
    known: KnownNames = lambda _path, _info: None,
) -> Iterator[Found]:
    """Everything below a folder, each folder before what is in it. Raises TreeTooLarge.

    Pipes, sockets and devices hold nothing to keep, and what vanishes meanwhile is gone: nobody is told of
    them. `skipped` are paths below the root. With `any_links`, files of others that have several
    names are taken too, and the caller beware.
    """
    walk = _Walk(root, limits, leave_out, any_links=any_links)
    try:
        walk.enter(root, "", known("", walk.top), skipped)
        while walk.levels:
            level = walk.levels[-1]
            for name in level.names:  # goes on where it was left
                found = walk.look_at(name, level)
                if found is None:
                    continue
                if not found.is_folder:
                    yield found
                    continue
                folder = walk.open_below(found)
                if folder is not None:
                    yield found  # `enter` comes after it: a caller sees a folder even if it is too large
                    walk.enter(folder, f"{found.path}/", known(found.path, found.info), skipped)
                    break
            else:
                walk.leave()
    finally:
        walk.close()


class _Level(NamedTuple):
    folder: int
    prefix: str
    names: Iterator[str]


class _Walk:
    """One walk: the folders between the root and where it is, all open. The root stays its caller's."""

    def __init__(self, root: int, limits: Limits, leave_out: LeaveOut, *, any_links: bool) -> None:
        self._any_links = any_links
        self.levels: list[_Level] = []
        self.top = os.fstat(root)
        self._limits = limits
        self._leave_out = leave_out
        self._listed = 0
        self._deadline = time.monotonic() + limits.seconds
        self._pending: int | None = None

    def enter(
        self, folder: int, prefix: str, known: Sequence[str] | None, skipped: Collection[str] = ()
    ) -> None:
        """List a folder, unless its names are known, and look at what is in it next.

        The descriptor is closed when that is done.
        """
        self._pending = None
        self.levels.append(_Level(folder, prefix, iter(known or ())))
        if known is not None:
            return
        names = _list_names(folder, self._limits.entries - self._listed)
        if names is None:
            raise TreeTooLarge(f"it has more than {self._limits.entries} files and folders")
        self._listed += len(names)
        kept = [name for name in names if prefix + name not in skipped] if skipped else names
        self.levels[-1] = _Level(folder, prefix, iter(kept))

    def leave(self) -> None:
        """The innermost folder is done."""
        folder = self.levels.pop().folder
        if self.levels:
            os.close(folder)

    def look_at(self, name: str, level: _Level) -> Found | None:
        """What has this name in a folder. None if it is not to be taken."""
        if time.monotonic() > self._deadline:
            raise TreeTooLarge(f"it takes longer than {self._limits.seconds:g} s to read")
        path = level.prefix + name
        try:
            info = os.stat(name, dir_fd=level.folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._leave_out(path, _reason(error))
            return None
        kind = stat.S_IFMT(info.st_mode)
        if kind not in KEPT:
            return None
        if (kind == stat.S_IFDIR or info.st_nlink > 1) and (why := self._refuse(kind, info)):
            self._leave_out(path, why)
            return None
        return Found(path, name, level.folder, info)

    def open_below(self, found: Found) -> int | None:
        try:
            self._pending = os.open(found.name, FOLDER, dir_fd=found.parent)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._leave_out(found.path, _reason(error))
        return self._pending

    def close(self) -> None:
        for level in self.levels[1:]:
            os.close(level.folder)
        if self._pending is not None:
            os.close(self._pending)

    def _refuse(self, kind: int, info: os.stat_result) -> str | None:
        """Why something is not taken, though it could be read."""
        if kind == stat.S_IFDIR:
            # Not asked of files: in an overlay they may come from another device than their folder.
            if info.st_dev != self.top.st_dev:
                return "another file system is mounted there"
            deepest = self._limits.depth
            return f"it is more than {deepest} folders deep" if len(self.levels) > deepest else None
        if info.st_uid != self.top.st_uid and not self._any_links:
            # A link that an agent made to somebody else's file, which it may not even be able to read.
            return "it is a hard link to a file of another user"
        return None


def _list_names(folder: int, most: int) -> list[str] | None:
    """The names in a folder, sorted; None for more than `most`, which are not all read."""
    with os.scandir(folder) as entries:
        names = [entry.name for entry in itertools.islice(entries, most + 1)]
    if len(names) > most:
        return None
    names.sort()
    return names


def _reason(error: OSError) -> str:
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return "it was replaced meanwhile"
    return error.strerror or str(error)


@contextlib.contextmanager
def open_folder(path: Path | str, parent: int | None = None) -> Iterator[int]:
    """A folder's descriptor. Fails if the path is a link."""
    fd = os.open(path, FOLDER, dir_fd=parent)
    try:
        yield fd
    finally:
        os.close(fd)


@contextlib.contextmanager
def open_file(name: Path | str, parent: int | None = None) -> Iterator[int]:
    """A regular file's descriptor. Fails for anything else, and waits for nothing."""
    fd = os.open(name, READ, dir_fd=parent)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(name))
        yield fd
    finally:
        os.close(fd)


@contextlib.contextmanager
def open_below(root: int, parts: Sequence[str | bytes]) -> Iterator[int]:
    """The descriptor of a folder below another one. Fails if there is a link on the way to it."""
    here = os.dup(root)
    try:
        for part in parts:
            above = here
            here = os.open(part, FOLDER, dir_fd=above)
            os.close(above)
        yield here
    finally:
        os.close(here)


@contextlib.contextmanager
def open_folder_below(home: Path, parts: Sequence[str]) -> Iterator[int]:
    """The descriptor of a folder in a home, made if missing. What an agent put in the way is removed."""
    with contextlib.ExitStack() as stack:
        here = stack.enter_context(open_folder(home))
        for part in parts:
            try:
                mode = os.stat(part, dir_fd=here, follow_symlinks=False).st_mode
            except FileNotFoundError:
                mode = 0
            if not stat.S_ISDIR(mode):
                if mode:
                    os.unlink(part, dir_fd=here)
                os.mkdir(part, 0o700, dir_fd=here)
            above = here
            here = stack.enter_context(open_folder(part, above))
            if not stat.S_ISDIR(mode):
                give_to_owner(here, above)
        yield here


def give_to_owner(made: int, folder: int) -> None:
    """What root has just made in a folder of an agent's user is that user's."""
    owner = os.fstat(folder)
    if os.geteuid() == 0 and owner.st_uid != 0:
        os.fchown(made, owner.st_uid, owner.st_gid)


def read_small_file(folder: int, name: str, limit: int) -> bytes:
    """The start of a file that an agent may have swapped."""
    with open_file(name, folder) as fd:
        return os.read(fd, limit)
