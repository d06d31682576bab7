"""Takes copies of one session's home at turn boundaries, makes them durable, restores and prunes them.

A copy is a manifest `<turn>.json` and objects under `files/`, one per regular file. A file that has not
changed since the copy before shares its object; objects that no manifest names are removed. An object is a
reflink where the file system can, else a real copy, but never a hard link to the home: agents write in place.
The manifest is written last, when all objects are on stable storage; without a manifest there is no copy.
"""

import json
import os
import re
import secrets
import threading
import zlib
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final, NoReturn

from clawdforge.disk import sync_file_system, sync_folder
from clawdforge.drivers.folders.file_copy import copy_bytes
from clawdforge.drivers.folders.tree_walk import (
    Found,
    Limits,
    TreeTooLarge,
    open_file,
    open_folder,
    walk_tree,
)
from clawdforge.drivers.folders.tree_write import TreeWriter, finish, is_plain_path

LIMITS: Final = Limits(entries=200_000, depth=64, seconds=60.0)
"""The agent stands still while its home is copied, so that may not take long."""
# File times are coarse: a file that changed just before a copy may change again without showing it.
RACY_NANOSECONDS = 50_000_000
MARK = "unsettled"  # while this file exists, there may be objects without a manifest


class NoCopy(Exception):
    """The home cannot be copied; the message says why."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A folder (`d`), file (`f`) or link (`l`) below the home."""

    path: str
    kind: str
    mode: int = 0
    size: int = 0
    mtime: int = 0
    ctime: int = 0
    inode: int = 0
    object: str = ""  # of a file
    crc: int = 0
    target: str = ""  # of a link

    def is_unchanged(self, info: os.stat_result, taken_at: int) -> bool:
        """Whether this file's copy, taken at that time, is still what the file holds."""
        then = (self.size, self.mtime, self.ctime, self.inode)
        now = (info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino)
        return then == now and self.kind == "f" and self.ctime < taken_at - RACY_NANOSECONDS

    def is_sound(self) -> bool:
        """Whether it may be written: a manifest may come out of a backup that a stranger made."""
        texts, numbers = (self.path, self.object, self.target), (self.mode, self.size, self.mtime, self.crc)
        if not all(isinstance(text, str) for text in texts) or not all(type(n) is int for n in numbers):
            return False
        if not is_plain_path(self.path, LIMITS.depth + 1):
            return False
        return self.kind in ("d", "l") or (self.kind == "f" and OBJECT.fullmatch(self.object) is not None)


FIELDS = tuple(each.name for each in fields(Entry))
OBJECT: Final = re.compile(r"[0-9a-f]{12}-[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Manifest:
    turn: int
    agent_session_id: str
    taken_at: int
    entries: tuple[Entry, ...] = ()
    fresh: frozenset[str] = field(default=frozenset())  # objects made for this copy

    @property
    def objects(self) -> dict[str, int]:
        return {entry.object: entry.size for entry in self.entries if entry.kind == "f"}

    def is_sound(self) -> bool:
        return all(entry.is_sound() for entry in self.entries)

    def encode(self) -> bytes:
        entries = [{n: value for n in FIELDS if (value := getattr(e, n))} for e in self.entries]
        body = {"turn": self.turn, "agent_session_id": self.agent_session_id, "taken_at": self.taken_at}
        body |= {"bytes": sum(self.objects.values()), "entries": entries}
        text = json.dumps(body, separators=(",", ":"))
        return f"{zlib.crc32(text.encode())}\n{text}\n".encode()


def decode_manifest(data: bytes) -> Manifest | None:
    """None for anything that is not a complete manifest."""
    head, _, text = data.partition(b"\n")
    text = text.removesuffix(b"\n")
    if not head.isdigit() or int(head) != zlib.crc32(text):
        return None
    try:
        body: dict[str, Any] = json.loads(text)
        entries = tuple(Entry(**entry) for entry in body["entries"])
        return Manifest(body["turn"], body["agent_session_id"], body["taken_at"], entries)
    except (ValueError, KeyError, TypeError):
        return None


class Copies:
    """The copies of one session. Its methods block; one caller at a time."""

    def __init__(self, folder: Path, *, max_copies: int, max_bytes: int, excluded: Collection[str]) -> None:
        self._folder = folder
        self._files = folder / "files"
        self._max_copies = max_copies
        self._max_bytes = max_bytes
        self._excluded = frozenset(excluded)

    def turns(self) -> list[int]:
        try:
            names = os.listdir(self._folder)  # noqa: PTH208 -- after every turn, and thrice as fast
        except FileNotFoundError:
            return []
        stems = (name.removesuffix(".json") for name in names if name.endswith(".json"))
        return sorted(int(stem) for stem in stems if stem.isdigit())

    def load(self, turn: int) -> Manifest | None:
        try:
            return decode_manifest((self._folder / f"{turn}.json").read_bytes())
        except FileNotFoundError:
            return None

    def take(self, home: Path, turn: int, agent_session_id: str, stop: threading.Event) -> Manifest:
        """Copy the home. The copy counts only after `make_durable`. Raises NoCopy or OSError.

        What does not become a copy leaves no objects: nobody else knows that they are there.
        """
        self._files.mkdir(parents=True, exist_ok=True, mode=0o700)
        mark = self._folder / MARK
        mark.touch()
        now = mark.stat().st_ctime_ns  # by the file system's clock, like the times of the files
        turns = self.turns()
        last = self.load(turns[-1]) if turns else None
        known = {entry.path: entry for entry in last.entries} if last else {}
        prefix = secrets.token_hex(6)
        entries: list[Entry] = []
        fresh: set[str] = set()
        total = 0
        try:
            with ExitStack() as unfinished, open_folder(home) as root:
                unfinished.callback(self._drop_objects, fresh)
                for found in walk_tree(root, LIMITS, _refuse, skipped=self._excluded):
                    if stop.is_set():
                        raise NoCopy("the server is stopping")
                    total += found.info.st_size if found.is_file else 0
                    if total > self._max_bytes:
                        raise NoCopy(f"the home has more than {self._max_bytes} bytes")
                    old = known.get(found.path)
                    if not found.is_file:
                        entries.append(_entry(found))
                    elif last and old and old.is_unchanged(found.info, last.taken_at):
                        mode = found.info.st_mode & 0o777
                        entries.append(old if old.mode == mode else replace(old, mode=mode))
                    else:
                        name = f"{prefix}-{len(fresh)}"
                        fresh.add(name)
                        entries.append(self._keep_file(found, name))
                unfinished.pop_all()
        except TreeTooLarge as error:
            raise NoCopy(f"the home is too large: {error}") from error
        return Manifest(turn, agent_session_id, now, tuple(entries), frozenset(fresh))

    def _drop_objects(self, names: Collection[str]) -> None:
        for name in names:
            (self._files / name).unlink(missing_ok=True)

    def make_durable(self, taken: Sequence[Manifest]) -> None:
        """Write copies to stable storage, then give their manifests their final names."""
        for manifest in taken:
            fresh = manifest.fresh
            entries = [
                self._add_checksum(entry) if entry.object in fresh else entry for entry in manifest.entries
            ]
            self._temporary_path(manifest.turn).write_bytes(
                replace(manifest, entries=tuple(entries)).encode()
            )
        sync_file_system(self._folder)
        for manifest in taken:
            self._temporary_path(manifest.turn).replace(self._folder / f"{manifest.turn}.json")
        sync_folder(self._folder)

    def clear_mark(self) -> None:
        """Note that every copy has its manifest. Must not run during a `take`."""
        (self._folder / MARK).unlink(missing_ok=True)

    def _temporary_path(self, turn: int) -> Path:
        return self._folder / f"{turn}.tmp"

    def needs_pruning(self, taken: Sequence[Manifest]) -> bool:
        """Whether pruning, which reads all manifests, is worth it: half as many again, or large ones."""
        fresh = sum(entry.size for each in taken for entry in each.entries if entry.object in each.fresh)
        return len(self.turns()) > self._max_copies * 3 // 2 or fresh > self._max_bytes // 64

    def prune(self) -> None:
        """Delete the oldest copies beyond the limits, but never the newest, and objects that nothing names.

        Must not run during a `take`.
        """
        manifests = [(turn, self.load(turn)) for turn in self.turns()]
        kept: dict[str, int] = {}
        count = gone = 0
        for turn, manifest in reversed(manifests):
            grown = kept | manifest.objects if manifest else kept
            fits = count < self._max_copies and sum(grown.values()) <= self._max_bytes
            if manifest is not None and (fits or count == 0):
                kept, count = grown, count + 1
                continue
            (self._folder / f"{turn}.json").unlink()
            gone += 1
            if manifest is not None:
                count = self._max_copies  # everything older goes as well
        if gone:  # first: after a loss of power, no manifest may come back without its objects
            sync_folder(self._folder)
        for path in self._files.iterdir():
            if path.name not in kept:
                path.unlink()
        for half in self._folder.glob("*.tmp"):
            half.unlink()
        self.clear_mark()

    def build(self, manifest: Manifest, target: Path) -> bool:
        """Make a home from a copy, on stable storage. False when the copy is incomplete."""
        target.mkdir(mode=0o700)
        if not manifest.is_sound():
            return False
        folders = [entry for entry in manifest.entries if entry.kind == "d"]
        with open_folder(target) as root, TreeWriter(root, LIMITS.depth + 1) as writer:
            for entry in folders:
                writer.add_folder(entry.path)
            for entry in manifest.entries:
                if entry.kind == "f" and not self._put_back(entry, writer):
                    return False
            for entry in manifest.entries:
                if entry.kind == "l":
                    writer.add_link(entry.path, entry.target)
            for entry in reversed(folders):
                writer.finish_folder(entry.path, entry.mode, entry.mtime)
        sync_file_system(target)
        return True

    def _keep_file(self, found: Found, name: str) -> Entry:
        target = os.open(self._files / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with open_file(found.name, found.parent) as source:
                info = os.fstat(source)
                if info.st_size > self._max_bytes:
                    raise NoCopy(f"the home has more than {self._max_bytes} bytes")
                entry = _entry(found._replace(info=info))
                return replace(entry, object=name, size=copy_bytes(source, target, info.st_size))
        finally:
            os.close(target)

    def _add_checksum(self, entry: Entry) -> Entry:
        with (self._files / entry.object).open("rb") as file:
            return replace(entry, crc=_crc(file.read))

    def _put_back(self, entry: Entry, writer: TreeWriter) -> bool:
        try:
            source = (self._files / entry.object).open("rb")
        except FileNotFoundError:
            return False
        with source:
            if os.fstat(source.fileno()).st_size != entry.size or _crc(source.read) != entry.crc:
                return False
            source.seek(0)
            target = writer.create_file(entry.path)
            try:
                copy_bytes(source.fileno(), target, entry.size)
                finish(target, entry.mode, entry.mtime)
            finally:
                os.close(target)
        return True


def _entry(found: Found) -> Entry:
    """What a manifest says of something; the object of a file is added when it is there."""
    info = found.info
    if found.is_folder:
        return Entry(found.path, "d", mode=info.st_mode & 0o777, mtime=info.st_mtime_ns)
    if not found.is_file:
        return Entry(found.path, "l", target=os.readlink(found.name, dir_fd=found.parent))
    return Entry(
        found.path,
        "f",
        mode=info.st_mode & 0o777,
        size=info.st_size,
        mtime=info.st_mtime_ns,
        ctime=info.st_ctime_ns,
        inode=info.st_ino,
    )


def _refuse(path: str, why: str) -> NoReturn:
    """A home without one of its files would be another memory than the agent has."""
    raise NoCopy(f"{path!r} cannot be copied: {why}")


def _crc(read: Callable[[int], bytes]) -> int:
    value = 0
    while chunk := read(1 << 20):
        value = zlib.crc32(chunk, value)
    return value
