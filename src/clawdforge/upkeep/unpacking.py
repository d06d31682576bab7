"""Unpacks a backup that a stranger may have made: nothing lands outside, and nothing bursts.

Only plain files, folders and links are taken, only where the caller says that they belong, and each once.
Links are made last, so that nothing is written through one. How much an archive may hold is bounded, and so
is what is read of it into memory at a time.
"""

import gzip
import hashlib
import json
import math
import os
import tarfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, TypeAlias, cast

from clawdforge.drivers.folders.tree_walk import open_folder
from clawdforge.drivers.folders.tree_write import BadPath, TreeWriter, finish, split_path
from clawdforge.upkeep.archive import FORMAT, MANIFEST, PIECE, Progress, UpkeepError
from clawdforge.wire.base import Json

GZIP: Final = b"\x1f\x8b"
HEADER_BYTES: Final = 1 << 20
MAX_FILES: Final = 1_000_000
LIST_BYTES: Final = 16 << 20
LIST_BYTES_EACH: Final = 300
"""How long an archive's list of files may be: that for any archive, or this for each of its files."""

MORE: Final = "if you know where it comes from, allow more with --max-files"
FREE_BYTES: Final = 64 << 20
"""What is left of the disk, and what an archive may grow to before its ratio is looked at."""

Belongs: TypeAlias = Callable[[tuple[str, ...], bytes], bool]
"""Whether a path, in parts, may be there as this type of member: a file, a folder or a link."""


@dataclass(frozen=True, slots=True)
class UnpackLimits:
    """What an archive may hold. `bytes` is no more than the disk has free; `ratio` is unpacked to packed."""

    bytes: int | None = None
    ratio: int = 200
    entries: int = MAX_FILES
    depth: int = 300

    @property
    def list_bytes(self) -> int:
        return max(LIST_BYTES, self.entries * LIST_BYTES_EACH)


def count_needed(entries: int, list_bytes: int) -> int:
    """How many entries must be allowed for an archive with so many, and a list of that length."""
    return max(entries, math.ceil(list_bytes / LIST_BYTES_EACH) if list_bytes > LIST_BYTES else 0)


class _Refused(Exception):
    """The archive holds something that no backup holds, or more than it may."""


def unpack(source: Path, target: Path, belongs: Belongs, limits: UnpackLimits, report: Progress) -> Json:
    """Unpack into an empty folder and verify every checksum. Returns the facts in the archive's manifest."""
    try:
        with (
            source.open("rb") as file,
            open_folder(target) as root,
            TreeWriter(root, limits.depth) as writer,
        ):
            unpacker = _Unpacker(writer, belongs, limits, _free_bytes(root))
            _read_members(_Stream(file, report), unpacker)
            facts = _read_facts(unpacker.manifest)
            unpacker.compare(facts["members"])
            unpacker.finish()
    except (_Refused, BadPath) as error:
        raise UpkeepError(f"{source} is refused, nothing was restored: {error}") from error
    except (tarfile.TarError, zlib.error, gzip.BadGzipFile, ValueError, EOFError, RecursionError) as error:
        raise UpkeepError(f"{source} is not a complete backup ({error}); use another one") from error
    except OSError as error:
        raise UpkeepError(f"{source} cannot be unpacked: {error}") from error
    return facts


def _read_members(stream: "_Stream", unpacker: "_Unpacker") -> None:
    stream.allow(HEADER_BYTES)
    with tarfile.open(fileobj=cast("IO[bytes]", stream), mode="r|") as tar:
        while member := tar.next():
            stream.allow(member.size + HEADER_BYTES)
            unpacker.add_member(tar, member, stream.packed_bytes)
            tar.members = []  # type: ignore[attr-defined]  # else it remembers all of them
            stream.allow(HEADER_BYTES)


def _read_facts(manifest: bytes) -> Json:
    facts = json.loads(manifest)
    if isinstance(facts, dict) and facts.get("format") == FORMAT and isinstance(facts.get("members"), dict):
        return facts
    raise ValueError("its list of files is damaged, or of another version")


def _free_bytes(folder: int) -> int:
    disk = os.fstatvfs(folder)
    return max(disk.f_bavail * disk.f_frsize - FREE_BYTES, 0)


class _Stream:
    """The unpacked bytes of an archive. Reports how much of it was read, and ends a read that is too long."""

    def __init__(self, file: IO[bytes], report: Progress) -> None:
        self._file = file
        self._report = report
        self._size = os.fstat(file.fileno()).st_size
        self._left = 0
        is_packed = file.read(len(GZIP)) == GZIP
        file.seek(0)
        self._bytes = cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if is_packed else file

    @property
    def packed_bytes(self) -> int:
        return self._file.tell()

    def allow(self, count: int) -> None:
        """How much may be read from here on: a header may claim any length, and would be read into memory."""
        self._left = count

    def read(self, size: int) -> bytes:
        piece = self._bytes.read(size)
        self._left -= len(piece)
        if self._left < 0:
            raise _Refused("a header in it is longer than any that a backup has")
        self._report(self._file.tell(), self._size)
        return piece


class _Unpacker:
    """Unpacks members one by one. Links are made last."""

    def __init__(self, writer: TreeWriter, belongs: Belongs, limits: UnpackLimits, free: int) -> None:
        self.manifest = b""
        self._writer = writer
        self._belongs = belongs
        self._limits = limits
        self._most = free if limits.bytes is None else min(limits.bytes, free)
        self._entries = 0
        self._written = 0
        self._files: dict[str, Json] = {}
        self._links: list[tuple[str, str]] = []
        self._folders: list[tuple[str, int]] = []

    def add_member(self, tar: tarfile.TarFile, member: tarfile.TarInfo, packed: int) -> None:
        self._check_size(member, packed)
        name = member.name
        if name == MANIFEST and member.type == tarfile.REGTYPE and not self.manifest:
            if member.size > self._limits.list_bytes:
                raise _Refused(f"its list of files is longer than {self._limits.list_bytes} bytes; {MORE}")
            data = tar.extractfile(member)
            self.manifest = data.read() if data is not None else b""
            return
        if member.issparse() or not self._belongs(split_path(name, self._limits.depth), member.type):
            raise _Refused(f"{name[:200]!r} is nothing that a backup has")
        if member.isdir():
            self._writer.add_folder(name)
            self._folders.append((name, member.mode))
        elif member.issym():
            self._links.append((name, member.linkname))
        else:
            self._files[name] = self._write(tar, member)

    def compare(self, expected: dict[str, Any]) -> None:
        """Every file must be what the archive's own list says."""
        names = {*self._files, *expected}
        wrong = sorted(name for name in names if self._files.get(name) != expected.get(name))
        if wrong:
            raise ValueError(f"{wrong[0]!r} and {len(wrong) - 1} more are damaged")

    def finish(self) -> None:
        for name, mode in reversed(self._folders):
            self._writer.finish_folder(name, mode | 0o700)
        for name, target in self._links:
            self._writer.add_link(name, target)

    def _check_size(self, member: tarfile.TarInfo, packed: int) -> None:
        self._entries += 1
        self._written += max(member.size, 0)  # a header can also claim less than nothing
        if self._entries > self._limits.entries:
            raise _Refused(f"it has more than {self._limits.entries} files; {MORE}")
        if self._written > self._most:
            raise _Refused(
                f"it unpacks to more than {self._most} bytes; "
                "free some of the disk, or allow more with --max-bytes"
            )
        if self._written > FREE_BYTES and self._written > self._limits.ratio * max(packed, 1) + FREE_BYTES:
            raise _Refused(
                f"it unpacks to more than {self._limits.ratio} times its size; "
                "if you know where it comes from, allow more with --max-ratio"
            )

    def _write(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> Json:
        data = tar.extractfile(member)
        digest, size = hashlib.sha256(), 0
        with os.fdopen(self._writer.create_file(member.name), "wb") as file:
            while data is not None and (piece := data.read(PIECE)):
                digest.update(piece)
                size += len(piece)
                file.write(piece)
            file.flush()
            finish(file.fileno(), member.mode, _nanoseconds(member.mtime))
        return {"size": size, "sha256": digest.hexdigest()}


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1_000_000_000) if math.isfinite(seconds) else 0
