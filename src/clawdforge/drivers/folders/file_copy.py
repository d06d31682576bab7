"""Bytes from one file to another, folders held by descriptor, and trees that go away whatever is in them."""

import contextlib
import ctypes
import errno
import fcntl
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

FICLONE = 0x40049409
CANNOT = {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTTY, errno.EBADF, errno.EPERM}


def copy_bytes(source: int, target: int, size: int) -> int:
    """At most `size` bytes, as a reflink where the file system can; how many there were."""
    if size == 0:
        return 0
    try:
        fcntl.ioctl(target, FICLONE, source)
        os.ftruncate(target, min(size, os.fstat(target).st_size))
        return os.fstat(target).st_size
    except OSError as error:
        if error.errno not in CANNOT:
            raise
    done = 0
    while done < size:
        try:
            count = os.copy_file_range(source, target, size - done)
        except OSError as error:
            if error.errno not in CANNOT or done:
                raise
            return _send(source, target, size)
        if count == 0:
            break
        done += count
    return done


def _send(source: int, target: int, size: int) -> int:
    done = 0
    while done < size and (count := os.sendfile(target, source, done, size - done)):
        done += count
    return done


@contextlib.contextmanager
def folder_at(path: Path | str, parent: int | None = None) -> Iterator[int]:
    """A folder's descriptor; fails where there is a link instead."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(path, flags, dir_fd=parent)
    try:
        yield fd
    finally:
        os.close(fd)


@contextlib.contextmanager
def folder_below(home: Path, parts: Sequence[str]) -> Iterator[int]:
    """A folder in a home, made where needed; what an agent put in its way is removed, never followed."""
    with contextlib.ExitStack() as stack:
        here = stack.enter_context(folder_at(home))
        for part in parts:
            try:
                mode = os.stat(part, dir_fd=here, follow_symlinks=False).st_mode
            except FileNotFoundError:
                mode = 0
            if not stat.S_ISDIR(mode):
                if mode:
                    os.unlink(part, dir_fd=here)
                os.mkdir(part, 0o700, dir_fd=here)
            here = stack.enter_context(folder_at(part, here))
        yield here


def sync_all(path: Path) -> None:
    """All of the file system of `path` to stable storage by one call: 1000 files in 40 ms, not in 4 s."""
    with folder_at(path) as fd:
        if ctypes.CDLL(None, use_errno=True).syncfs(fd) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(path))


def sync_folder(path: Path) -> None:
    with folder_at(path) as fd:
        os.fsync(fd)


def delete_tree(path: Path) -> None:
    """Also what agents leave to annoy: folders that may not be written, and deeper than Python recurses."""
    if path.is_symlink():
        path.unlink()
        return
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        return
    except (OSError, RecursionError):
        for command in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
            subprocess.run([*command, "--", str(path)], check=False, stderr=subprocess.DEVNULL)
