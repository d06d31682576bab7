"""Writes and reads one tar file with checksums.

Their list comes last, so an incomplete archive is noticed.
"""

import hashlib
import json
import os
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, TypeAlias, cast

from clawdforge.wire.base import Json

Progress: TypeAlias = Callable[[int, int | None], None]
MANIFEST: Final = "manifest.json"
FORMAT: Final = 1
PIECE: Final = 1 << 20
MAX_IN_MEMORY: Final = 16 << 20
READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
WRITE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class UpkeepError(Exception):
    """Something was not done; the message says why and what to do."""


def ignore_progress(_done: int, _whole: int | None) -> None:
    """For callers that show no progress."""


class Writer:
    """Adds members. A file that changes meanwhile is stored as it was read.

    Calls `report` with the number of bytes read so far.
    """

    def __init__(self, tar: tarfile.TarFile, report: Progress) -> None:
        self._tar = tar
        self._report = report
        self._read = 0
        self._members: dict[str, Json] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def add_file(self, name: str, path: Path) -> bool:
        """False when there is no such file, or it is not a regular one."""
        try:
            handle = os.open(path, READ)
        except OSError:
            return False
        with (
            os.fdopen(handle, "rb") as source,
            tempfile.SpooledTemporaryFile(MAX_IN_MEMORY) as buffer,
        ):
            state = os.fstat(source.fileno())
            if not os.path.isfile(f"/proc/self/fd/{source.fileno()}"):  # noqa: PTH113 - of a descriptor
                return False
            digest, size = hashlib.sha256(), 0
            while piece := source.read(PIECE):
                digest.update(piece)
                size += len(piece)
                buffer.write(piece)
                self._read += len(piece)
                self._report(self._read, None)
            buffer.seek(0)
            self._put(name, state.st_mode & 0o777, int(state.st_mtime), size, cast("IO[bytes]", buffer))
        self._members[name] = {"size": size, "sha256": digest.hexdigest()}
        return True

    def add_tree(self, name: str, top: Path) -> None:
        """Add folders, regular files and links. What cannot be read is left out."""
        with suppress(OSError):
            self._folder(name, top)
            for path in sorted(top.iterdir()):
                inner = f"{name}/{path.name}"
                if path.is_symlink():
                    self._link(inner, str(path.readlink()))
                elif path.is_dir():
                    self.add_tree(inner, path)
                else:
                    self.add_file(inner, path)

    def finish(self, facts: Json) -> None:
        body = json.dumps({"format": FORMAT, **facts, "members": self._members}).encode()
        with tempfile.SpooledTemporaryFile(MAX_IN_MEMORY) as buffer:
            buffer.write(body)
            buffer.seek(0)
            self._put(MANIFEST, 0o600, 0, len(body), cast("IO[bytes]", buffer))

    def _put(self, name: str, mode: int, mtime: int, size: int, data: IO[bytes]) -> None:
        info = tarfile.TarInfo(name)
        info.mode, info.mtime, info.size = mode, mtime, size
        self._tar.addfile(info, data)

    def _folder(self, name: str, path: Path) -> None:
        info = tarfile.TarInfo(name)
        info.type, info.mode = tarfile.DIRTYPE, path.stat().st_mode & 0o777
        self._tar.addfile(info)

    def _link(self, name: str, target: str) -> None:
        info = tarfile.TarInfo(name)
        info.type, info.linkname = tarfile.SYMTYPE, target
        self._tar.addfile(info)


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
                yield Writer(tar, report)
            file.flush()
            os.fsync(file.fileno())
        part.rename(target)
        _sync_folder(target.parent)
    except OSError as error:
        raise UpkeepError(f"{target} cannot be written: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)


def unpack(source: Path, target: Path, report: Progress) -> Json:
    """Unpack into an empty folder and verify every checksum. Returns the facts in the archive's manifest."""
    unpacker = _Unpacker(target)
    try:
        with source.open("rb") as file, _open_tar(file, report) as tar:
            for member in tar:
                unpacker.add_member(tar, member)
        facts = json.loads(unpacker.manifest)
        expected: dict[str, Json] = facts["members"] if facts["format"] == FORMAT else {}
    except (tarfile.TarError, ValueError, TypeError, KeyError, EOFError) as error:
        raise UpkeepError(f"{source} is not a complete backup ({error}); use another one") from error
    except OSError as error:
        raise UpkeepError(f"{source} cannot be unpacked: {error}") from error
    wrong = sorted(
        name for name in {*unpacker.files, *expected} if unpacker.files.get(name) != expected.get(name)
    )
    if wrong:
        raise UpkeepError(f"{source} is damaged ({wrong[0]} and {len(wrong) - 1} more); use another one")
    unpacker.finish()
    return dict(facts)


def _open_tar(file: IO[bytes], report: Progress) -> tarfile.TarFile:
    return tarfile.open(fileobj=cast("IO[bytes]", _CountedFile(file, report)), mode="r|*")


class _CountedFile:
    """A file that reports how much of it was read, and its size."""

    def __init__(self, file: IO[bytes], report: Progress) -> None:
        self._file = file
        self._report = report
        self._size = os.fstat(file.fileno()).st_size

    def read(self, size: int = -1) -> bytes:
        piece = self._file.read(size)
        self._report(self._file.tell(), self._size)
        return piece


class _Unpacker:
    """Unpacks members one by one. Links are made last, so that nothing is written through one."""

    def __init__(self, target: Path) -> None:
        self.files: dict[str, Json] = {}
        self.manifest = b""
        self._target = target
        self._links: list[tuple[Path, str]] = []
        self._folders: list[tuple[Path, int]] = []

    def add_member(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        path = _path_inside(self._target, member.name)
        if member.name == MANIFEST:
            data = tar.extractfile(member)
            self.manifest = data.read() if data is not None else b""
        elif member.isdir():
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._folders.append((path, member.mode & 0o777))
        elif member.issym():
            self._links.append((path, member.linkname))
        elif member.isfile():
            self.files[member.name] = _write(tar, member, path)

    def finish(self) -> None:
        for path, linkname in self._links:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.symlink_to(linkname)
        for path, mode in reversed(self._folders):
            path.chmod(mode | 0o700)


def _path_inside(target: Path, name: str) -> Path:
    parts = PurePosixPath(name).parts
    if not parts or parts[0] == "/" or ".." in parts:
        raise ValueError(f"a member would be outside the folder: {name!r}")
    return target.joinpath(*parts)


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> Json:
    data = tar.extractfile(member)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with os.fdopen(os.open(path, WRITE, 0o600), "wb") as file:
        while data is not None and (piece := data.read(PIECE)):
            digest.update(piece)
            size += len(piece)
            file.write(piece)
        os.fchmod(file.fileno(), member.mode & 0o777)
    os.utime(path, (member.mtime, member.mtime))
    return {"size": size, "sha256": digest.hexdigest()}


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
