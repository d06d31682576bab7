"""Takes copies of one session's home at turn boundaries, restores and prunes them.

A copy is a manifest `<turn>.json` and objects under `files/`, one per regular file. A file that has not
changed since the copy before shares its object, and one that has only grown shares the beginning
(`grown_files.py`); objects that no manifest names are removed. An object is a reflink where the file system
can, else a real copy, but never a hard link to the home: agents write in place.
The manifest is written last; without a whole manifest there is no copy, and the next start removes one that a
crash cut off. All of it is there after a crash of the server, and on stable storage a little later: what a
loss of power leaves of a copy is known by its checksums.
"""

import errno
import os
import re
import secrets
import threading
import zlib
from collections.abc import Collection, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, NoReturn

from clawdforge.disk import sync_file_system, sync_folder
from clawdforge.drivers.folders.file_copy import copy_bytes
from clawdforge.drivers.folders.grown_files import (
    find_beginning,
    has_sizes,
    is_whole,
    open_part,
    read_crc,
)
from clawdforge.drivers.folders.home_manifest import (
    LIMITS,
    Entry,
    Manifest,
    decode_manifest,
    decode_objects,
    entry_of,
)
from clawdforge.drivers.folders.second_look import Moved, SecondLook
from clawdforge.drivers.folders.tree_walk import Found, TreeTooLarge, open_file, open_folder, walk_tree
from clawdforge.drivers.folders.tree_write import TreeWriter, finish

FEW_ENTRIES: Final = 250
"""A home with more is looked at once, while its agent stands still, and its manifest is not remembered."""
FEW_OBJECTS: Final = 16
"""Of copies with no more, what they name is remembered, so that pruning need not read it."""
SMALL_BYTES: Final = 1 << 14
NAME: Final = re.compile(r"(0|[1-9][0-9]{0,17})\.json")
MARK = "unsettled"  # while this file exists, there may be objects without a manifest


class NoCopy(Exception):
    """The home cannot be copied; the message says why."""


class Copies:
    """The copies of one session. Its methods block; one caller at a time."""

    def __init__(self, folder: Path, *, max_copies: int, max_bytes: int, excluded: Collection[str]) -> None:
        self._folder = folder
        self._files = folder / "files"
        self._place, self._kept_files = str(folder), str(self._files)  # after every turn, and far faster
        self._max_copies = max_copies
        self._max_bytes = max_bytes
        self._excluded = frozenset(excluded)
        self._last: Manifest | None = None  # the newest copy, if it is on the disk and has few entries
        self._is_looked_through = False  # whether the objects of the newest copy are known to be there
        self._turns: list[int] | None = None  # that have a copy
        self._objects: dict[int, dict[str, int]] = {}  # of some of these copies

    def turns(self) -> list[int]:
        if self._turns is None:
            self._turns = self._list_turns()
        return self._turns

    def _list_turns(self) -> list[int]:
        try:
            names = os.listdir(self._folder)  # noqa: PTH208 -- after every turn, and thrice as fast
        except FileNotFoundError:
            return []
        return sorted(int(found[1]) for found in map(NAME.fullmatch, names) if found)

    def load(self, turn: int) -> Manifest | None:
        try:
            return decode_manifest((self._folder / f"{turn}.json").read_bytes())
        except FileNotFoundError:
            return None

    def _read_objects(self, turn: int) -> dict[str, int] | None:
        if turn in self._objects:
            return self._objects[turn]
        with (self._folder / f"{turn}.json").open("rb", buffering=0) as file:
            return decode_objects(file.read())

    def take(self, home: Path, turn: int, agent_session_id: str, stop: threading.Event) -> Manifest:
        """Copy the home. It survives a loss of power only after `make_durable`. Raises NoCopy or OSError.

        What does not become a copy leaves no objects: nobody else knows that they are there.
        """
        self._files.mkdir(parents=True, exist_ok=True, mode=0o700)
        last = self._last or self._load_last()
        taken = Manifest(turn, agent_session_id, self._mark())
        with ExitStack() as unfinished:
            found = self._copy(home, last, taken, stop, unfinished)
            self._keep(found)
            unfinished.pop_all()
            return found

    def take_beside(
        self, home: Path, turn: int, agent_session_id: str, stop: threading.Event
    ) -> Manifest | None:
        """The same while the agent may run: a second look shows whether anything moved meanwhile.

        None if something did, or where `take` is the better way: with much in the home, or with a copy that
        has to be read first.
        """
        last = self._last
        if (last is None and self.turns()) or (last is not None and len(last.entries) > FEW_ENTRIES):
            return None
        if last is None:
            self._files.mkdir(parents=True, exist_ok=True, mode=0o700)
        taken = Manifest(turn, agent_session_id, self._mark())
        look = SecondLook(FEW_ENTRIES if last is None else None)
        with suppress(Moved, NoCopy, OSError), ExitStack() as unfinished:  # `take` says whether that lasts
            found = self._copy(home, last, taken, stop, unfinished, look)
            if look.is_same(home, found, self._excluded):
                self._keep(found)
                unfinished.pop_all()
                return found
        return None

    def _copy(
        self,
        home: Path,
        last: Manifest | None,
        taken: Manifest,
        stop: threading.Event,
        unfinished: ExitStack,
        look: SecondLook | None = None,
    ) -> Manifest:
        """The manifest with all entries. Their objects go when `unfinished` ends, unless it is emptied."""
        known = {entry.path: entry for entry in last.entries} if last else {}
        prefix = secrets.token_hex(6)
        entries: list[Entry] = []
        fresh: dict[str, int] = {}
        total = 0
        unfinished.callback(self._drop_objects, fresh)
        try:
            with open_folder(home) as root:
                if look is not None:
                    look.note_root(os.fstat(root))
                for found in walk_tree(root, LIMITS, _refuse, skipped=self._excluded):
                    if stop.is_set():
                        raise NoCopy("the server is stopping")
                    total += found.info.st_size if found.is_file else 0
                    if total > self._max_bytes:
                        raise NoCopy(f"the home has more than {self._max_bytes} bytes")
                    old = known.get(found.path)
                    if look is not None:
                        look.note(found)
                    if not found.is_file:
                        entries.append(entry_of(found))
                    elif last and old and old.is_unchanged(found.info, last.taken_at):
                        mode = found.info.st_mode & 0o777
                        entries.append(old if old.mode == mode else replace(old, mode=mode))
                    else:
                        name = f"{prefix}-{len(fresh)}"
                        fresh[name] = 0
                        entries.append(self._keep_file(found, name, old, fresh))
        except TreeTooLarge as error:
            raise NoCopy(f"the home is too large: {error}") from error
        whole = tuple(self._add_checksums(entries, fresh))
        size = sum([entry.last_size for entry in whole if entry.object in fresh])
        return Manifest(taken.turn, taken.agent_session_id, taken.taken_at, whole, fresh, size)

    def _mark(self) -> int:
        """Note that there may be objects without a manifest; the time, by the file system's own clock."""
        mark = f"{self._place}/{MARK}"
        try:
            os.utime(mark)
            return os.stat(mark).st_ctime_ns  # noqa: PTH116 -- like the times of the files
        except FileNotFoundError:
            fd = os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            return os.fstat(fd).st_ctime_ns
        finally:
            os.close(fd)

    def _load_last(self) -> Manifest | None:
        """The newest copy, as far as it can be shared.

        A loss of power may have taken objects of it; with those, no later copy would be whole.
        """
        turns = self.turns()
        last = self.load(turns[-1]) if turns else None
        if last is None or not last.is_sound():
            return None
        if self._is_looked_through:
            return last
        there = (e for e in last.entries if e.kind != "f" or has_sizes(self._kept_files, e))
        return replace(last, entries=tuple(there))

    def _drop_objects(self, names: Collection[str]) -> None:
        for name in names:
            (self._files / name).unlink(missing_ok=True)

    def _keep(self, whole: Manifest) -> None:
        turns, self._last, self._turns = self.turns(), None, None
        self._objects.pop(whole.turn, None)
        self._write_manifest(whole.turn, whole.encode())
        self._is_looked_through = True
        if len(whole.entries) <= FEW_OBJECTS:
            self._objects[whole.turn] = whole.objects
        self._turns = sorted({*turns, whole.turn})
        if len(whole.entries) <= FEW_ENTRIES and self._turns[-1] == whole.turn:
            self._last = whole

    def _write_manifest(self, turn: int, content: bytes) -> None:
        """All of it or nothing. What a kill cuts off is none: only another of that turn needs a rename."""
        manifest = f"{self._place}/{turn}.json"
        try:
            _write_file(manifest, content, os.O_EXCL)
        except FileExistsError:
            temporary = f"{self._place}/{turn}.tmp"
            _write_file(temporary, content, os.O_TRUNC)
            try:
                os.rename(temporary, manifest)  # noqa: PTH104
            except OSError:
                os.unlink(temporary)  # noqa: PTH108
                raise

    def make_durable(self) -> None:
        """Write all copies, with all else on their file system, to stable storage."""
        sync_file_system(self._folder)

    def clear_mark(self) -> None:
        """Note that every copy has its manifest. Must not run during a `take`."""
        (self._folder / MARK).unlink(missing_ok=True)

    def needs_pruning(self, taken: Sequence[Manifest]) -> bool:
        """Whether pruning, which reads all manifests, is worth it: half as many again, or large ones."""
        return len(self.turns()) > self._max_copies * 3 // 2 or self.has_large(taken)

    def has_large(self, taken: Sequence[Manifest]) -> bool:
        """Whether these have taken so much room that others have to make some soon."""
        return sum([each.fresh_bytes for each in taken]) > self._max_bytes // 64

    def prune(self) -> None:
        """Delete the oldest copies beyond the limits, but never the newest, and objects that nothing names.

        Must not run during a `take`.
        """
        self.drop_old()
        kept = {name for turn in self.turns() for name in self._read_objects(turn) or ()}
        sync_folder(self._folder)
        with open_folder(self._files) as files:
            for name in os.listdir(files):  # noqa: PTH208 -- of a descriptor, and many
                if name not in kept:
                    os.unlink(name, dir_fd=files)
        for half in self._folder.glob("*.tmp"):
            half.unlink()
        self.clear_mark()

    def drop_old(self) -> set[str]:
        """Delete the manifests of the oldest copies beyond the limits, but never the newest.

        Returns the objects that only they have named. Must not run during a `take`.
        """
        self._turns = None
        turns = self.turns()
        kept: dict[str, int] = {}
        dropped: set[str] = set()
        total, count, gone = 0, 0, set[int]()
        for turn in reversed(turns):
            objects = self._read_objects(turn)
            if objects is not None:
                new = sum(size for name, size in objects.items() if name not in kept)
                if count == 0 or (count < self._max_copies and total + new <= self._max_bytes):
                    kept |= objects
                    total, count = total + new, count + 1
                    continue
                count = self._max_copies  # everything older goes as well
            self._objects.pop(turn, None)
            os.unlink(f"{self._place}/{turn}.json")  # noqa: PTH108
            gone.add(turn)
            dropped |= objects.keys() if objects is not None else set()
        self._turns = [turn for turn in turns if turn not in gone]
        return dropped - kept.keys()

    def remove_objects(self, names: Collection[str]) -> None:
        """Delete objects that no manifest names any more. May run during a `take`, which names none of them.

        After a loss of power, no manifest may come back without its objects: so the folder is synced first.
        """
        if names:
            sync_folder(self._folder)
            self._drop_objects(names)

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

    def _keep_file(self, found: Found, name: str, old: Entry | None, fresh: dict[str, int]) -> Entry:
        target = os.open(
            f"{self._kept_files}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600
        )
        try:
            with open_file(found.name, found.parent) as source:
                info = os.fstat(source)
                if info.st_size > self._max_bytes:
                    raise NoCopy(f"the home has more than {self._max_bytes} bytes")
                kept = Found(found.path, found.name, found.parent, info)
                if info.st_size <= SMALL_BYTES:
                    content = os.read(source, info.st_size)
                    _write_all(target, content)
                    return entry_of(kept, name, len(content), crc=zlib.crc32(content))
                begin = find_beginning(old, source, info.st_size, self._kept_files)
                fresh[name] = begin.crc
                count = copy_bytes(source, target, info.st_size - begin.size, begin.size)
                return entry_of(kept, name, begin.size + count, begin.parts)
        finally:
            os.close(target)

    def _add_checksums(self, entries: Sequence[Entry], fresh: dict[str, int]) -> list[Entry]:
        return [
            self._add_checksum(entry, fresh[entry.object])
            if entry.object in fresh and not entry.crc
            else entry
            for entry in entries
        ]

    def _add_checksum(self, entry: Entry, before: int) -> Entry:
        with open_part(self._kept_files, entry.object) as part:
            return replace(entry, crc=read_crc(part, before))

    def _put_back(self, entry: Entry, writer: TreeWriter) -> bool:
        if not is_whole(self._kept_files, entry):
            return False
        target = writer.create_file(entry.path)
        try:
            for name, size in entry.parts:
                with open_part(self._kept_files, name) as part:
                    if copy_bytes(part, target, size) != size:
                        return False
            finish(target, entry.mode, entry.mtime)
        finally:
            os.close(target)
        return True


def _write_file(path: str, content: bytes, how: int) -> None:
    """Create a file, and leave none that is not whole, such as on a full disk."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | how, 0o600)
    try:
        try:
            _write_all(fd, content)
        finally:
            os.close(fd)
    except OSError:
        os.unlink(path)  # noqa: PTH108
        raise


def _write_all(fd: int, content: bytes) -> None:
    if os.write(fd, content) < len(content):  # of a regular file, this is a full disk
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _refuse(path: str, why: str) -> NoReturn:
    """A home without one of its files would be another memory than the agent has."""
    raise NoCopy(f"{path!r} cannot be copied: {why}")
