"""Homes with their real locking over folders that are only remembered; likewise workspaces' files."""

import asyncio
import copy
import threading
from collections.abc import Sequence
from pathlib import Path

from clawdforge.core.models.rows import SessionRow
from clawdforge.core.models.workspaces import Workspace
from clawdforge.core.ports import LiveAgent
from clawdforge.drivers.folders.fair_threads import FairThreads
from clawdforge.drivers.folders.home_copies import Copies, NoCopy
from clawdforge.drivers.folders.home_manifest import Entry, Manifest
from clawdforge.drivers.folders.homes import THREADS, HomeFolders
from clawdforge.wire.errors import Conflict, Unsupported
from proofs.simulation.threads import SimThreads
from proofs.simulation.world import Memory, World

TOP = Path("/simulated")
KEPT = 3
FIRST_WITH_FILES = 3


class SimHomes(HomeFolders):
    """Only what blocks is replaced: each such piece of work fails, and takes its time, as the plan says."""

    def __init__(self, world: World) -> None:
        super().__init__(TOP, operator_home=TOP, max_copies=KEPT)
        self._threads = FairThreads(SimThreads(), THREADS)
        self._world = world

    def names(self) -> list[str]:
        return sorted({*self._world.disk.homes, *self._world.disk.copies})

    def _copies_of(self, session_id: str) -> Copies:
        return SimCopies(self._world, session_id)

    def _make_home(self, home: Path) -> None:
        self._world.occupy(f"home {home.name}", "making a home")
        _fail(self._world, "home fails")
        self._world.disk.homes.setdefault(home.name, {})

    def _link_credentials(self, home: Path) -> None:
        """There are none."""

    def _swap(self, copies: Copies, home: Path, turn_index: int) -> Manifest | None:
        self._world.occupy(f"home {home.name}", "restoring a home")
        _fail(self._world, "home fails")
        if self._world.living.get(home.name):
            self._world.violate(f"the home of {home.name} is replaced while an agent lives in it")
        if isinstance(copies, SimCopies):
            copies.read()
        manifest = copies.load(turn_index) if turn_index else Manifest(0, "", 0)
        if manifest is None:
            return None
        self._world.disk.homes[home.name] = _unpack(manifest)
        return manifest if turn_index else None

    def _set_aside(self, session_id: str) -> bool:
        found = session_id in self.names()
        self._take_away(session_id)
        return found

    def _take_away(self, session_id: str) -> list[Path]:
        self._world.occupy(f"home {session_id}", "removing a home")
        self._world.occupy(f"copies {session_id}", "removing copies")
        if self._world.living.get(session_id):
            self._world.violate(f"the home of {session_id} is removed while an agent lives in it")
        self._world.disk.homes.pop(session_id, None)
        self._world.disk.copies.pop(session_id, None)
        self._world.disk.trees.pop(session_id, None)
        return []


class SimCopies(Copies):
    def __init__(self, world: World, session_id: str) -> None:
        super().__init__(TOP / session_id, max_copies=KEPT, max_bytes=1 << 20, excluded=())
        self._world = world
        self._session = session_id

    def turns(self) -> list[int]:
        return sorted(self._world.disk.copies.get(self._session, {}))

    def load(self, turn: int) -> Manifest | None:
        found = self._world.disk.copies.get(self._session, {}).get(turn)
        return None if found is None else _pack(turn, *found)

    def take_beside(self, home: Path, turn: int, agent_session_id: str, stop: threading.Event) -> None:
        """Things move all the time."""

    def take(self, home: Path, turn: int, agent_session_id: str, stop: threading.Event) -> Manifest:
        self._world.occupy(f"copies {self._session}", "taking a copy")
        if self._world.strikes("no copy"):
            self._world.prolong()
            raise NoCopy("too large (simulated)")
        if stop.is_set():
            raise NoCopy("the server is stopping")
        _fail(self._world, "copy lost")
        memory = copy.deepcopy(self._world.disk.homes.get(home.name, {}))
        self._world.disk.copies.setdefault(self._session, {})[turn] = (agent_session_id, memory)
        return _pack(turn, agent_session_id, memory)

    def read(self) -> None:
        self._world.occupy(f"copies {self._session}", "reading a copy")

    def make_durable(self) -> None:
        _fail(self._world, "copy lost")

    def needs_pruning(self, taken: Sequence[Manifest]) -> bool:
        return bool(taken) and len(self.turns()) > KEPT

    def has_large(self, taken: Sequence[Manifest]) -> bool:
        return self.needs_pruning(taken)

    def drop_old(self) -> set[str]:
        self._world.occupy(f"copies {self._session}", "pruning copies")
        _fail(self._world, "copy lost")
        kept = self._world.disk.copies.get(self._session, {})
        for turn in sorted(kept)[:-KEPT]:
            del kept[turn]
        return set()

    def clear_mark(self) -> None:
        self._world.occupy(f"copies {self._session}", "clearing the mark")


class SimSnapshots:
    """The port for workspaces' files: one caller at a time for each session, as in the real one."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._locks: dict[str, asyncio.Lock] = {}

    async def record_first(self, session: SessionRow) -> None:
        if 0 not in self._world.disk.trees.get(session.session_id, {}):
            await self._record(session.session_id, 0)

    async def record_turn(self, session: SessionRow, turn_index: int, live: LiveAgent | None) -> None:  # noqa: ARG002 - as the port has it
        await self._record(session.session_id, turn_index)

    def has_files(self, session: SessionRow) -> bool:
        return any(turn >= FIRST_WITH_FILES for turn in self._world.disk.trees.get(session.session_id, {}))

    def record_empty(self, session: SessionRow, turn_index: int) -> bool:
        if turn_index >= FIRST_WITH_FILES or self._world.strikes("no snapshot"):
            return False
        self._world.disk.trees.setdefault(session.session_id, {})[turn_index] = f"tree-{turn_index}"
        return True

    async def tree_of(self, session: SessionRow, turn_index: int) -> str:
        tree = self._world.disk.trees.get(session.session_id, {}).get(turn_index)
        if tree is None:
            raise Unsupported("not recorded (simulated)")
        return tree

    async def record_present(self, session: SessionRow) -> str:
        async with self._lock(session.session_id):
            await self._world.pause()
            if self._world.strikes("no snapshot"):
                raise Conflict("cannot be recorded (simulated)")
            return "present"

    async def restore(self, session: SessionRow, tree: str) -> None:  # noqa: ARG002 - part of the port
        async with self._lock(session.session_id):
            await self._world.pause()
            if self._world.living.get(session.session_id):
                self._world.violate("the workspace is put back while an agent works in it")
            if self._world.strikes("no snapshot"):
                raise Conflict("cannot be restored (simulated)")

    async def branch(self, source: SessionRow, target: str, through: int) -> None:
        async with self._lock(source.session_id):
            await self._world.pause()
            if not self._world.strikes("no snapshot"):
                known = self._world.disk.trees.get(source.session_id, {})
                self._world.disk.trees[target] = {turn: known[turn] for turn in known if turn <= through}

    async def _record(self, session_id: str, turn_index: int) -> None:
        async with self._lock(session_id):
            await self._world.pause()
            if not self._world.strikes("no snapshot"):
                self._world.disk.trees.setdefault(session_id, {})[turn_index] = f"tree-{turn_index}"

    def _lock(self, session_id: str) -> asyncio.Lock:
        return self._locks.setdefault(session_id, asyncio.Lock())


class SimWorkspaces:
    """The port for folders: each is what it was, since nobody swaps folders here."""

    def make(self, session_id: str) -> Workspace:
        return self.check(str(TOP / "workspaces" / session_id))

    async def set_aside(self, session_id: str) -> bool:  # noqa: ARG002 - as the port has it
        return False

    def check(self, path: str, granted: Sequence[str] = (), *, anywhere: bool = False) -> Workspace:  # noqa: ARG002 - as the port has it
        return Workspace(Path(path), path)

    def own_path(self, name: str) -> str:
        return str(TOP / "workspaces" / name)

    def is_own(self, path: str) -> bool:
        return Path(path).parent == TOP / "workspaces"

    def check_root(self, path: str) -> str:
        return path

    def identify(self, path: str, identity: str | None) -> str:  # noqa: ARG002 - as the port has it
        return path

    def is_place(self, identity: str | None) -> bool:  # noqa: ARG002 - as the port has it
        return True

    def place(self) -> str:
        return str(TOP)

    def remove(self, session_id: str) -> None: ...


def _fail(world: World, kind: str) -> None:
    if world.strikes(kind):
        world.prolong()
        raise OSError(28, "no space left (simulated)")


def _pack(turn: int, agent_session_id: str, memory: Memory) -> Manifest:
    entries = tuple(Entry(path=name, kind="f", target="\n".join(heard)) for name, heard in memory.items())
    return Manifest(turn, agent_session_id, 0, entries)


def _unpack(manifest: Manifest) -> Memory:
    return {entry.path: entry.target.split("\n") if entry.target else [] for entry in manifest.entries}
