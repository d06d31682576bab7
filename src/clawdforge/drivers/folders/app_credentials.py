"""Copies of the operator's credential files for the users that agents run as, kept equal to them.

A user of its own may not read the operator's files. So the sessions of an app share a copy in the data
folder, which is mounted where the operator's file would be. Whichever of the two was written later counts: a
token that is refreshed in one session serves the operator and the other apps from its next turn on.
"""

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from clawdforge.drivers.folders.credentials import MAX_BYTES, replace_shared
from clawdforge.drivers.folders.tree_walk import open_file
from clawdforge.drivers.processes.users import User

FOLDER: Final = "credentials"
UNFINISHED: Final = ".unfinished"
"""Stands beside a copy while it is written: what a crash leaves of it must not become the operator's."""


def exchange(data_dir: Path, user: User, shared: Sequence[Path]) -> tuple[tuple[Path, Path], ...]:
    """Bring the user's copies up to date, or the operator's files; each file with the place of its copy."""
    if not shared:
        return ()
    folder = data_dir / FOLDER / str(user.uid)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _locked(folder):
        return tuple((path, _exchange_one(folder, path, user)) for path in shared)


def exchange_known(data_dir: Path, home: Path, shared: Sequence[Path]) -> None:
    """The same for the user that a home belongs to, if it has copies."""
    info = home.stat()
    if has_copies(data_dir, info.st_uid):
        exchange(data_dir, User(info.st_uid, info.st_gid), shared)


def has_copies(data_dir: Path, uid: int) -> bool:
    return (data_dir / FOLDER / str(uid)).is_dir()


def _exchange_one(folder: Path, shared: Path, user: User) -> Path:
    copy = folder / hashlib.sha256(os.fsencode(shared)).hexdigest()[:32]
    unfinished = copy.with_name(copy.name + UNFINISHED)
    theirs = None if unfinished.exists() else _time_of(copy)
    if theirs is not None and theirs > shared.stat().st_mtime_ns:
        content = _read(copy)
        if 0 < len(content) <= MAX_BYTES and content != _read(shared):
            replace_shared(shared, content)
            _set_time(copy, shared)
            return copy
    if theirs != shared.stat().st_mtime_ns:
        unfinished.touch(mode=0o600)
        _write(copy, _read(shared), user)
        _set_time(copy, shared)
        unfinished.unlink()
    return copy


def _write(copy: Path, content: bytes, user: User) -> None:
    """In place: running agents have this very file mounted."""
    fd = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        os.fchown(fd, user.uid, user.gid)
        os.fchmod(fd, 0o600)
        file.write(content)
        file.truncate()
        file.flush()
        os.fsync(fd)


def _read(path: Path) -> bytes:
    with open_file(path) as fd:
        return os.read(fd, MAX_BYTES + 1)


def _time_of(path: Path) -> int | None:
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_mtime_ns
    return None


def _set_time(copy: Path, shared: Path) -> None:
    time = shared.stat().st_mtime_ns
    os.utime(copy, ns=(time, time))


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Sessions of one app may be started at once."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
