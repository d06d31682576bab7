"""The homes and workspaces of sessions as other nodes can have them: implements core's `SharedFiles`."""

import os
import secrets
import stat
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Final, cast

from clawdforge.core.models.rows import SessionRow
from clawdforge.core.models.workspaces import Workspace
from clawdforge.core.ports.shared_files import NotStill, TooMuch, TreeWriting
from clawdforge.disk import sync_file_system, sync_folder
from clawdforge.drivers.folders.grown_files import open_part
from clawdforge.drivers.folders.home_copies import Copies
from clawdforge.drivers.folders.home_lock import run_to_end
from clawdforge.drivers.folders.home_manifest import RACY_NANOSECONDS, Entry, Manifest
from clawdforge.drivers.folders.homes import HomeFolders, check_id
from clawdforge.drivers.folders.tree_pieces import (
    PIECE_BYTES,
    Item,
    Known,
    PieceReading,
    PieceWriting,
    Source,
    decode_manifest,
    read_descriptor,
)
from clawdforge.drivers.folders.tree_removal import delete_tree
from clawdforge.drivers.folders.tree_walk import (
    Found,
    Limits,
    TreeTooLarge,
    open_file,
    open_folder,
    walk_tree,
)
from clawdforge.drivers.folders.workspaces import Workspaces

LIMITS: Final = Limits(entries=50_000, depth=64, seconds=600.0)
"""What is read is sent in between, to a place that may be slow."""
MOST_PATHS: Final = 8 << 20
"""Bytes of all paths: they are kept until the end, several times over."""
REMEMBERED: Final = 64
"""Of so many sessions it is remembered what was read last, so that what has not changed is not read again."""


class ReadHome(PieceReading):
    """The copy of a turn."""

    turn_index = 0
    agent_session_id = ""


class SharedTrees:
    def __init__(self, data_dir: Path, homes: HomeFolders, workspaces: Workspaces, max_bytes: int) -> None:
        self._homes = homes
        self._workspaces = workspaces
        self._max_bytes = max_bytes
        self._copies = data_dir / "copies"
        self._building = data_dir / "homes"  # where a start removes what is unfinished
        self._own = data_dir.resolve() / "workspaces"
        self._known: OrderedDict[tuple[str, str], Known] = OrderedDict()

    def read_home(self, session_id: str) -> ReadHome | None:
        folder = self._copies / check_id(session_id)
        copies = Copies(folder, max_copies=1, max_bytes=self._max_bytes, excluded=())
        turns = copies.turns()
        found = copies.load(turns[-1]) if turns else None
        if found is None or not found.is_sound():
            return None
        reading = ReadHome(
            _list_copy(found, str(folder / "files")), self._recall("home", session_id), lambda: None
        )
        reading.turn_index, reading.agent_session_id = found.turn, found.agent_session_id
        self._remember("home", session_id, reading)
        return reading

    def read_workspace(self, session: SessionRow) -> PieceReading:
        self._building.mkdir(parents=True, exist_ok=True, mode=0o700)
        walk = StillWalk(Path(session.cwd), self._max_bytes, _read_clock(self._building / ".clock"))
        reading = PieceReading(walk.read(), self._recall("workspace", session.session_id), walk.look_again)
        self._remember("workspace", session.session_id, reading)
        return reading

    def is_empty(self, session: SessionRow) -> bool:
        try:
            with os.scandir(session.cwd) as found:
                return next(found, None) is None
        except OSError:
            return False

    def write_home(self, session_id: str, manifest: bytes) -> PieceWriting:
        return self._begin(session_id, manifest)

    def write_workspace(self, session_id: str, manifest: bytes) -> PieceWriting:
        return self._begin(session_id, manifest)

    async def place_home(
        self, session_id: str, writing: TreeWriting, turn_index: int, agent_session_id: str
    ) -> None:
        built = await run_to_end(lambda: _finish(writing))
        await self._homes.adopt(session_id, built, turn_index, agent_session_id)

    def workspace_path(self, session_id: str) -> str:
        return str(self._own / check_id(session_id))

    async def place_workspace(
        self, session_id: str, writing: TreeWriting, *, is_shared: bool = False
    ) -> Workspace:
        name = f"{check_id(session_id)}-{secrets.token_hex(4)}" if is_shared else check_id(session_id)
        return await run_to_end(lambda: self._place_workspace(name, writing))

    async def make_workspace(self, session_id: str) -> Workspace:
        return await run_to_end(lambda: self._workspaces.make(session_id))

    def forget(self, session_id: str) -> None:
        for kind in ("home", "workspace"):
            self._known.pop((kind, session_id), None)

    def _place_workspace(self, session_id: str, writing: TreeWriting) -> Workspace:
        built, target = _finish(writing), self._own / session_id
        gone = self._building / f".gone-{secrets.token_hex(8)}"
        self._own.mkdir(mode=0o700, exist_ok=True)
        if target.exists():
            target.rename(gone)
        built.rename(target)
        sync_folder(self._own)
        delete_tree(gone)
        return self._workspaces.make(session_id)

    def _begin(self, session_id: str, manifest: bytes) -> PieceWriting:
        check_id(session_id)
        items = decode_manifest(manifest)
        self._building.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder = self._building / f".new-{secrets.token_hex(8)}"
        folder.mkdir(mode=0o700)
        root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        return PieceWriting(folder, root, items, delete_tree)

    def _recall(self, kind: str, session_id: str) -> Known:
        return self._known.get((kind, session_id), {})

    def _remember(self, kind: str, session_id: str, reading: PieceReading) -> None:
        self._known[kind, session_id] = reading.known
        self._known.move_to_end((kind, session_id))
        if len(self._known) > 2 * REMEMBERED:
            self._known.popitem(last=False)


class StillWalk:
    """A workspace, read while nobody should be at work in it: a second look shows whether anybody was."""

    def __init__(self, folder: Path, max_bytes: int, begun: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._begun = begun
        self._seen: dict[str, tuple[int, ...]] = {}

    def read(self) -> Iterator[Source]:
        total = paths = 0
        try:
            with open_folder(self._folder) as root:
                for found in walk_tree(root, LIMITS, _refuse):
                    total += found.info.st_size if found.is_file else 0
                    if total > self._max_bytes:
                        raise TooMuch(f"it has more than {self._max_bytes} bytes")
                    paths = count_path(paths, found.path)
                    self._seen[found.path] = marks = _marks(found.info)
                    yield _source_of(found, marks)
        except TreeTooLarge as error:
            raise TooMuch(str(error)) from error
        except PermissionError as error:
            raise TooMuch(f"a file of it cannot be read: {error}") from error
        except OSError as error:
            raise NotStill(f"something of it is gone, or is something else now: {error}") from error

    def look_again(self) -> None:
        """NotStill unless everything is as it was, and was so for a moment: times are coarse."""
        seen: dict[str, tuple[int, ...]] = {}
        try:
            with open_folder(self._folder) as root:
                for found in walk_tree(root, LIMITS, _refuse):
                    seen[found.path] = _marks(found.info)
                    if found.info.st_ctime_ns >= self._begun - RACY_NANOSECONDS:
                        raise NotStill(f"{found.path!r} changed a moment ago")
        except TreeTooLarge as error:
            raise NotStill(str(error)) from error
        if seen != self._seen:
            raise NotStill("files came, went or changed")


def count_path(paths: int, path: str) -> int:
    paths += len(os.fsencode(path))
    if paths > MOST_PATHS:
        raise TooMuch("the names of its files are too long together")
    return paths


def _source_of(found: Found, marks: tuple[int, ...]) -> Source:
    info = found.info
    mode, mtime = stat.S_IMODE(info.st_mode) & 0o777, info.st_mtime_ns
    if found.is_folder:
        return Source(Item(found.path, "d", mode=mode, mtime=mtime))
    if not found.is_file:
        return Source(Item(found.path, "l", target=os.readlink(found.name, dir_fd=found.parent)))

    def read() -> Iterator[bytes]:
        with open_file(found.name, found.parent) as fd:
            yield from read_descriptor(fd, info.st_size)

    return Source(Item(found.path, "f", mode=mode, mtime=mtime, size=info.st_size), marks, read)


def _list_copy(copy: Manifest, files: str) -> Iterator[Source]:
    paths = 0
    for entry in copy.entries:
        paths = count_path(paths, entry.path)
        item = Item(entry.path, entry.kind, mode=entry.mode, mtime=entry.mtime, target=entry.target)
        if entry.kind != "f":
            yield Source(item)
            continue
        item = Item(entry.path, "f", mode=entry.mode, mtime=entry.mtime, size=entry.size)
        yield Source(item, (entry.parts,), lambda entry=entry: _read_parts(files, entry))  # type: ignore[misc]


def _read_parts(files: str, entry: Entry) -> Iterator[bytes]:
    """The bytes of a file that a copy has, cut where they would be cut in the file."""
    rest = b""
    for name, size in entry.parts:
        with open_part(files, name) as part:
            for data in read_descriptor(part, size):
                rest += data
                while len(rest) >= PIECE_BYTES:
                    yield rest[:PIECE_BYTES]
                    rest = rest[PIECE_BYTES:]
    if rest:
        yield rest


def _finish(writing: TreeWriting) -> Path:
    written = cast(PieceWriting, writing)
    written.finish()
    sync_file_system(written.folder)
    return written.folder


def _read_clock(file: Path) -> int:
    """The time by the file system's own clock, like the times of the files."""
    fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.utime(fd)
        return os.fstat(fd).st_ctime_ns
    finally:
        os.close(fd)


def _marks(info: os.stat_result) -> tuple[int, ...]:
    return info.st_mode, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def _refuse(path: str, why: str) -> None:
    raise TooMuch(f"{path!r} cannot be read: {why}")
