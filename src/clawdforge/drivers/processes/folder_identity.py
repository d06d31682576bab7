"""Which folder a descriptor stands for: its identity, and whether it lies in or above another folder.

An identity is text: device, inode and time of birth. Inodes are used again after a folder was deleted; the
birth tells the new one from the old. The number of a device may be another one after the machine was started
again, so a folder that has inode and birth in common is the same on whatever device. Where a file system gets
its number anew at each mount (major 0), none is recorded; on overlayfs the birth moves when a folder is first
written to, so there it is not recorded either.
"""

import ctypes
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from clawdforge.drivers.processes.held_paths import PathChanged, PathMissing, open_real_path

LIBC: Final = ctypes.CDLL(None, use_errno=True)
AT_EMPTY_PATH: Final = 0x1000
STATX_BTIME: Final = 0x800
STATX_MNT_ID: Final = 0x1000
STATX_WANTED: Final = 0x7FF | STATX_BTIME | STATX_MNT_ID
OVERLAYFS: Final = 0x794C7630
FOLDER_ABOVE: Final = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


class NotTheFolder(Exception):
    """What stands at a path is not the folder that is meant; the text says why, and what to do."""


class FolderClosed(NotTheFolder):
    """The server's user may not enter the folder, so nobody can tell where it lies."""


class _Found(NamedTuple):
    """What the kernel says of a descriptor. `mount` tells the two sides of a mount point apart."""

    device: int
    inode: int
    mount: int
    born: int


def read_identity(fd: int) -> str:
    found = _look(fd)
    device = found.device if os.major(found.device) else 0
    return f"{device}:{found.inode}:{0 if _is_overlay(fd) else found.born}"


def is_same(recorded: str, found: str) -> bool:
    """Whether two identities are of one folder."""
    device, _, rest = recorded.partition(":")
    other, _, more = found.partition(":")
    return rest == more and (device == other or not rest.endswith(":0"))


def walk_up(fd: int) -> Iterator[int]:
    """Descriptors of a folder and of everything above it, nearest first; each is good until the next.

    Raises FolderClosed where one of them may not be searched.
    """
    here = os.dup(fd)
    below, seen = None, _look(here)
    try:
        while seen != below:  # above the root there is only the root
            yield here
            above = _open_above(here)
            os.close(here)
            here, below, seen = above, seen, _look(above)
    finally:
        os.close(here)


def lies_in(fd: int, folder: int) -> bool:
    """Whether a folder is another, or lies anywhere below it. Names, renames and mounts do not matter."""
    wanted = os.fstat(folder)
    return any(os.path.samestat(os.fstat(above), wanted) for above in walk_up(fd))


def check_folder(fd: int, path: Path, identity: str | None, data_dir: Path) -> str:
    """The identity of a workspace. NotTheFolder unless it was recorded, and is apart from the data folder.

    Without an identity only the second is asked. Workspaces that the server made lie in the data folder by
    their names, and may.
    """
    found = read_identity(fd)
    if identity is not None and not is_same(identity, found):
        raise NotTheFolder(
            f"{path} is not the folder that the session was made in: it was replaced, or something was"
            " mounted or unmounted there; put the folder back, or start a new session"
        )
    if f"{path}/".startswith(f"{data_dir}/"):
        return found
    data = os.open(data_dir, FOLDER_ABOVE)
    try:
        if lies_in(fd, data) or lies_in(data, fd):
            raise NotTheFolder(
                f"{path} lies in the server's data folder now, or around it; start a new session elsewhere"
            )
    finally:
        os.close(data)
    return found


def identify_workspace(path: Path, identity: str | None, data_dir: Path) -> str:
    """The identity of exactly this folder. NotTheFolder says what is wrong."""
    fd = _open(path)
    try:
        return check_folder(fd, path, identity, data_dir)
    finally:
        os.close(fd)


def open_workspace(path: Path, identity: str | None, data_dir: Path) -> int:
    """A descriptor of exactly this folder, for whoever works in it. NotTheFolder says what is wrong."""
    fd = _open(path)
    try:
        check_folder(fd, path, identity, data_dir)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _open(path: Path) -> int:
    try:
        return open_real_path(path)
    except PathMissing as error:
        raise NotTheFolder(
            f"{path} does not exist, or is not mounted; put the folder back, or start a new session"
        ) from error
    except (PathChanged, OSError) as error:
        raise NotTheFolder(
            f"{path} was replaced by a link, or cannot be opened; put the folder back, or start a new session"
        ) from error


def _open_above(fd: int) -> int:
    try:
        return os.open("..", FOLDER_ABOVE, dir_fd=fd)
    except OSError as error:
        raise FolderClosed(
            f"the server may not enter the working directory ({error.strerror}); let its user search the"
            " folder (chmod +x), or start a new session elsewhere"
        ) from error


def _look(fd: int) -> _Found:
    """Without statx, in a very old C library, there is no birth to be had."""
    seen = os.fstat(fd)
    buffer = ctypes.create_string_buffer(256)
    if not hasattr(LIBC, "statx") or LIBC.statx(fd, b"", AT_EMPTY_PATH, STATX_WANTED, buffer):
        return _Found(seen.st_dev, seen.st_ino, 0, 0)
    (mask,) = struct.unpack_from("=I", buffer, 0)
    seconds, nanoseconds = struct.unpack_from("=qI", buffer, 80)
    (mount,) = struct.unpack_from("=Q", buffer, 144)
    born = seconds * 1_000_000_000 + nanoseconds if mask & STATX_BTIME else 0
    return _Found(seen.st_dev, seen.st_ino, mount if mask & STATX_MNT_ID else 0, born)


def _is_overlay(fd: int) -> bool:
    buffer = ctypes.create_string_buffer(256)
    if LIBC.fstatfs(fd, buffer):
        return False
    return ctypes.c_long.from_buffer(buffer).value == OVERLAYFS
