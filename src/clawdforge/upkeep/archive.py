"""Writes one tar file with checksums.

Their list comes last, so an incomplete archive is noticed.
"""

import hashlib
import json
import os
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, TypeAlias, cast

from clawdforge.disk import sync_folder
from clawdforge.drivers.folders.tree_walk import (
    Found,
    Limits,
    TreeTooLarge,
    open_file,
    open_folder,
    walk_tree,
)
from clawdforge.wire.base import Json

Progress: TypeAlias = Callable[[int, int | None], None]
MANIFEST: Final = "manifest.json"
FORMAT: Final = 1
PIECE: Final = 1 << 20
MAX_IN_MEMORY: Final = 16 << 20
MAX_NAMED: Final = 1000
SPARSE_BYTES: Final = 64 << 20
WALK: Final = Limits(entries=1_000_000, depth=256, seconds=3600.0)


class UpkeepError(Exception):
    """Something was not done; the message says why and what to do."""


class _Unreadable(Exception):
    """Something cannot be read; the archive can do without it."""

    @classmethod
    def of(cls, error: OSError) -> "_Unreadable":
        return (_Vanished if isinstance(error, FileNotFoundError) else cls)(error.strerror or str(error))


class _Vanished(_Unreadable):
    """It was removed meanwhile, so there is nothing to be told."""


@dataclass(frozen=True, slots=True)
class TreeLimits:
    """How much of one tree is taken."""

    bytes: int
    walk: Limits = WALK


def ignore_progress(_done: int, _whole: int | None) -> None:
    """For callers that show no progress."""


class Writer:
    """Adds members. A file that changes meanwhile is stored as it was read.

    Calls `report` with the number of bytes read so far. `left_out` says what of trees was not taken, and why,
    for the first thousand. `entries` counts all members; `list_bytes` is how long their list is at the end.
    """

    def __init__(self, tar: tarfile.TarFile, report: Progress, spool: Path) -> None:
        self.left_out: dict[str, str] = {}
        self.left_out_count = 0
        self.entries = 0
        self.list_bytes = 0
        self._tar = tar
        self._report = report
        self._spool = spool
        self._read = 0
        self._members: dict[str, Json] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def add_file(self, name: str, path: Path) -> bool:
        """False when there is no such file, or it is not a regular one."""
        try:
            self._add_file(name, path, None)
        except _Unreadable:
            return False
        return True

    def add_tree(self, name: str, top: Path, limits: TreeLimits) -> None:
        """Add folders, regular files and links of a tree that an agent owns, and may be changing meanwhile.

        What cannot be taken, or goes beyond the limits, is left out and noted.
        """

        def leave_out(path: str, why: str) -> None:
            self._leave_out(f"{name}/{path}", why)

        try:
            with _open_tree(top) as root:
                self._add_folder(name, os.fstat(root).st_mode)
                left = limits.bytes
                for found in walk_tree(root, limits.walk, leave_out):
                    try:
                        left -= self._add_found(f"{name}/{found.path}", found, left)
                    except _Vanished:
                        continue
                    except _Unreadable as error:
                        leave_out(found.path, str(error))
        except _Vanished:
            return
        except (TreeTooLarge, _Unreadable) as error:
            self._leave_out(name, f"{error}; what follows in it is left out")

    def _add_found(self, name: str, found: Found, left: int) -> int:
        """Returns how many bytes that took."""
        if found.is_folder:
            self._add_folder(name, found.info.st_mode)
            return 0
        if not found.is_file:
            self._add_link(name, found)
            return 0
        size = found.info.st_size
        if size > SPARSE_BYTES and found.info.st_blocks * 512 < size // 2:
            # Small on the disk, and as large as its agent likes in an archive.
            raise _Unreadable(f"it is a sparse file of {size} bytes")
        if size > left:
            raise _Unreadable("the workspace is larger than allowed; allow more with --max-workspace-bytes")
        return self._add_file(name, found.name, found.parent, most=left)

    def _add_file(self, name: str, path: Path | str, parent: int | None, most: int | None = None) -> int:
        with (
            _open_source(path, parent) as fd,
            tempfile.SpooledTemporaryFile(MAX_IN_MEMORY, dir=str(self._spool)) as buffer,
        ):
            state = os.fstat(fd)
            digest, size = hashlib.sha256(), 0
            while piece := _read(fd, PIECE if most is None else min(PIECE, most - size)):
                digest.update(piece)
                size += len(piece)
                buffer.write(piece)
                self._read += len(piece)
                self._report(self._read, None)
            buffer.seek(0)
            self._put(name, state.st_mode & 0o777, int(state.st_mtime), size, cast("IO[bytes]", buffer))
        self._members[name] = {"size": size, "sha256": digest.hexdigest()}
        return size

    def _leave_out(self, name: str, why: str) -> None:
        self.left_out_count += 1
        if len(self.left_out) < MAX_NAMED:
            self.left_out[name] = why

    def finish(self, facts: Json) -> None:
        body = json.dumps({"format": FORMAT, **facts, "members": self._members}).encode()
        self.list_bytes = len(body)
        with tempfile.SpooledTemporaryFile(MAX_IN_MEMORY, dir=str(self._spool)) as buffer:
            buffer.write(body)
            buffer.seek(0)
            self._put(MANIFEST, 0o600, 0, len(body), cast("IO[bytes]", buffer))

    def _put(self, name: str, mode: int, mtime: int, size: int, data: IO[bytes]) -> None:
        info = tarfile.TarInfo(name)
        info.mode, info.mtime, info.size = mode, mtime, size
        self._add(info, data)

    def _add_folder(self, name: str, mode: int) -> None:
        info = tarfile.TarInfo(name)
        info.type, info.mode = tarfile.DIRTYPE, mode & 0o777
        self._add(info)

    def _add_link(self, name: str, found: Found) -> None:
        info = tarfile.TarInfo(name)
        try:
            info.type, info.linkname = tarfile.SYMTYPE, os.readlink(found.name, dir_fd=found.parent)
        except OSError as error:
            raise _Unreadable("it was replaced meanwhile") from error
        self._add(info)

    def _add(self, info: tarfile.TarInfo, data: IO[bytes] | None = None) -> None:
        self._tar.addfile(info, data)
        self.entries += 1


@contextmanager
def _open_source(path: Path | str, parent: int | None) -> Iterator[int]:
    """A file to read. Only what is wrong with it is forgiven, and nothing that is wrong with the archive."""
    with ExitStack() as stack:
        try:
            fd = stack.enter_context(open_file(path, parent))
        except OSError as error:
            raise _Unreadable.of(error) from error
        yield fd


@contextmanager
def _open_tree(top: Path) -> Iterator[int]:
    with ExitStack() as stack:
        try:
            fd = stack.enter_context(open_folder(top))
        except OSError as error:
            raise _Unreadable.of(error) from error
        yield fd


def _read(fd: int, size: int) -> bytes:
    try:
        return os.read(fd, size)
    except OSError as error:
        raise _Unreadable.of(error) from error


@contextmanager
def create_archive(target: Path, report: Progress) -> Iterator[Writer]:
    """An archive that gets its name once it is complete and on the disk. `.gz` means compressed."""
    part = target.with_name(f".{target.name}.part")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            packed = target.suffix == ".gz"
            options: dict[str, Any] = {"compresslevel": 1} if packed else {}
            mode = "w:gz" if packed else "w:"
            with tarfile.open(fileobj=file, mode=mode, format=tarfile.PAX_FORMAT, **options) as tar:  # type: ignore[call-overload]
                yield Writer(tar, report, target.parent)
            file.flush()
            os.fsync(file.fileno())
        part.rename(target)
        sync_folder(target.parent)
    except OSError as error:
        raise UpkeepError(f"{target} cannot be written: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)
