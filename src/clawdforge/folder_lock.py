"""The lock on a data folder: it admits one server at a time and says where to reach it."""

import contextlib
import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any

from clawdforge.folder import prepare_folder
from clawdforge.wire.errors import ForgeAPIError

NAME = "server.lock"
PATIENCE_SECS = 0.3  # `read_holder` takes the lock for a moment


class FolderTaken(ForgeAPIError):
    """Another server uses this data folder; stop it, or choose another folder with --data-dir."""


class FolderLock:
    """Held by the process until `release`, or until the process ends for whatever reason."""

    def __init__(self, handle: int, pid: int) -> None:
        self._handle = handle
        self._pid = pid

    @classmethod
    def acquire(cls, data_dir: Path, url: str, pid: int) -> "FolderLock":
        path = prepare_folder(data_dir) / NAME
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(handle, 0o600)
            _acquire(handle, data_dir)
        except BaseException:
            os.close(handle)
            raise
        lock = cls(handle, pid)
        lock.announce(url)
        return lock

    def announce(self, url: str) -> None:
        """Say where the server can be reached. The port may be known only after the lock was taken."""
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, json.dumps({"url": url, "pid": self._pid}).encode(), 0)

    def release(self) -> None:
        if self._handle >= 0:
            os.ftruncate(self._handle, 0)
            os.close(self._handle)
            self._handle = -1


def read_holder(data_dir: Path) -> dict[str, Any] | None:
    """`url` and `pid` of the server that holds the folder now; None when nobody does."""
    try:
        handle = os.open(data_dir / NAME, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return None if _try_flock(handle, fcntl.LOCK_SH) else _read_holder(handle)
    finally:
        os.close(handle)


def _acquire(handle: int, data_dir: Path) -> None:
    deadline = time.monotonic() + PATIENCE_SECS
    while not _try_flock(handle, fcntl.LOCK_EX):
        if time.monotonic() > deadline:
            raise _taken_error(data_dir, _read_holder(handle))
        time.sleep(0.01)


def _try_flock(handle: int, how: int) -> bool:
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read_holder(handle: int) -> dict[str, Any] | None:
    with contextlib.suppress(ValueError):
        found = json.loads(os.pread(handle, 4096, 0))
        if isinstance(found, dict):
            return found
    return None


def _taken_error(data_dir: Path, holder: dict[str, Any] | None) -> FolderTaken:
    who = f"the server at {holder['url']} (pid {holder['pid']})" if holder else "another server"
    stop = f"stop it with `kill {holder['pid']}`" if holder else "stop it"
    return FolderTaken(
        f"{data_dir} is in use by {who}; use that server, {stop}, or choose another folder with --data-dir",
        **(holder or {}),
    )
