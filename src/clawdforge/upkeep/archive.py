"""One tar file with a checksum for each member; the list of them comes last, so a torn archive is seen."""

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

Told: TypeAlias = Callable[[int, int | None], None]
MANIFEST: Final = "manifest.json"
FORMAT: Final = 1
PIECE: Final = 1 << 20
IN_MEMORY: Final = 16 << 20
READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
WRITE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class UpkeepError(Exception):
    """It was not done; the words say why and what to do."""


def untold(_done: int, _whole: int | None) -> None:
    """For callers whom nobody watches."""


class Writer:
    """Adds members. A file that changes while it is read is stored as it was read.

    `told` is called with the bytes that were read so far.
    """

    def __init__(self, tar: tarfile.TarFile, told: Told) -> None:
        self._tar = tar
        self._told = told
        self._read = 0
        self._members: dict[str, Json] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def add_file(self, name: str, path: Path) -> bool:
        """False when it is not there, or is no plain file."""
        try:
            handle = os.open(path, READ)
        except OSError:
            return False
        with (
            os.fdopen(handle, "rb") as source,
            tempfile.SpooledTemporaryFile(IN_MEMORY) as kept,
        ):
            state = os.fstat(source.fileno())
            if not os.path.isfile(f"/proc/self/fd/{source.fileno()}"):  # noqa: PTH113 - of a descriptor
                return False
            digest, size = hashlib.sha256(), 0
            while piece := source.read(PIECE):
                digest.update(piece)
                size += len(piece)
                kept.write(piece)
                self._read += len(piece)
                self._told(self._read, None)
            kept.seek(0)
            self._put(name, state.st_mode & 0o777, int(state.st_mtime), size, cast("IO[bytes]", kept))
        self._members[name] = {"size": size, "sha256": digest.hexdigest()}
        return True

    def add_tree(self, name: str, top: Path) -> None:
        """Folders, plain files and links, as far as they can be read."""
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
        with tempfile.SpooledTemporaryFile(IN_MEMORY) as kept:
            kept.write(body)
            kept.seek(0)
            self._put(MANIFEST, 0o600, 0, len(body), cast("IO[bytes]", kept))

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
def create(target: Path, told: Told) -> Iterator[Writer]:
    """An archive that appears under its name once it is whole and on the disk. `.gz` means packed."""
    part = target.with_name(f".{target.name}.part")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            packed = target.suffix == ".gz"
            options: dict[str, Any] = {"compresslevel": 1} if packed else {}
            mode = "w:gz" if packed else "w:"
            with tarfile.open(fileobj=file, mode=mode, format=tarfile.PAX_FORMAT, **options) as tar:  # type: ignore[call-overload]
                yield Writer(tar, told)
            file.flush()
            os.fsync(file.fileno())
        part.rename(target)
        _sync(target.parent)
    except OSError as error:
        raise UpkeepError(f"{target} cannot be written: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)


def unpack(source: Path, target: Path, told: Told) -> Json:
    """Put every member into an empty folder and compare it with its checksum; the archive's facts."""
    found = _Unpacked(target)
    try:
        with source.open("rb") as file, _opened(file, told) as tar:
            for member in tar:
                found.take(tar, member)
        facts = json.loads(found.manifest)
        expected: dict[str, Json] = facts["members"] if facts["format"] == FORMAT else {}
    except (tarfile.TarError, ValueError, TypeError, KeyError, EOFError) as error:
        raise UpkeepError(f"{source} is not a whole backup ({error}); take another one") from error
    except OSError as error:
        raise UpkeepError(f"{source} cannot be unpacked: {error}") from error
    wrong = sorted(name for name in {*found.files, *expected} if found.files.get(name) != expected.get(name))
    if wrong:
        raise UpkeepError(f"{source} is damaged ({wrong[0]} and {len(wrong) - 1} more); take another one")
    found.finish()
    return dict(facts)


def _opened(file: IO[bytes], told: Told) -> tarfile.TarFile:
    return tarfile.open(fileobj=cast("IO[bytes]", _Watched(file, told)), mode="r|*")


class _Watched:
    """A file that says how much of it was read, and how much there is."""

    def __init__(self, file: IO[bytes], told: Told) -> None:
        self._file = file
        self._told = told
        self._size = os.fstat(file.fileno()).st_size

    def read(self, size: int = -1) -> bytes:
        piece = self._file.read(size)
        self._told(self._file.tell(), self._size)
        return piece


class _Unpacked:
    """What has been unpacked so far. Links come last, so that nothing is written through one."""

    def __init__(self, target: Path) -> None:
        self.files: dict[str, Json] = {}
        self.manifest = b""
        self._target = target
        self._links: list[tuple[Path, str]] = []
        self._folders: list[tuple[Path, int]] = []

    def take(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        place = _inside(self._target, member.name)
        if member.name == MANIFEST:
            data = tar.extractfile(member)
            self.manifest = data.read() if data is not None else b""
        elif member.isdir():
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._folders.append((place, member.mode & 0o777))
        elif member.issym():
            self._links.append((place, member.linkname))
        elif member.isfile():
            self.files[member.name] = _write(tar, member, place)

    def finish(self) -> None:
        for place, linkname in self._links:
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            place.symlink_to(linkname)
        for place, mode in reversed(self._folders):
            place.chmod(mode | 0o700)


def _inside(target: Path, name: str) -> Path:
    parts = PurePosixPath(name).parts
    if not parts or parts[0] == "/" or ".." in parts:
        raise ValueError(f"it has a member outside of the folder ({name!r})")
    return target.joinpath(*parts)


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> Json:
    data = tar.extractfile(member)
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with os.fdopen(os.open(place, WRITE, 0o600), "wb") as file:
        while data is not None and (piece := data.read(PIECE)):
            digest.update(piece)
            size += len(piece)
            file.write(piece)
        os.fchmod(file.fileno(), member.mode & 0o777)
    os.utime(place, (member.mtime, member.mtime))
    return {"size": size, "sha256": digest.hexdigest()}


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
