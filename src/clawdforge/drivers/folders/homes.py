"""The private folder of each session's agent, and its copies: implements core's `Homes`."""

import asyncio
import contextlib
import logging
import re
import secrets
import threading
import weakref
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from clawdforge.core.model import AgentSpec, FileRow
from clawdforge.core.ports import LiveAgent
from clawdforge.drivers.folders import attachments, credentials, home_settings
from clawdforge.drivers.folders.file_copy import delete_tree, sync_folder
from clawdforge.drivers.folders.home_copies import UNSETTLED, Copies, Manifest, NoCopy
from clawdforge.drivers.processes.environment import TEMPORARY

T = TypeVar("T")
log = logging.getLogger(__name__)

SHADOWS = "shadows"
"""Where what is known of workspaces lies; it goes with the home."""

EXCLUDED = (
    TEMPORARY,
    attachments.FOLDER,
    ".npm",
    ".cache",
    ".bun",
    ".cargo",
    ".rustup",
    ".yarn",
    ".pnpm-store",
)
"""Top-level folders that are no part of an agent's memory: caches, and what we put there ourselves."""


def checked_id(session_id: str) -> str:
    """It becomes a file name."""
    if not re.fullmatch(r"[0-9A-Za-z_-]{1,64}", session_id):
        raise ValueError("a session id has letters, digits, - and _ only")
    return session_id


class HomeFolders:
    """Names that start with a dot are halves: `.new-`, `.old-<id>`, `.gone-`; see `sweep_halves`."""

    def __init__(
        self,
        data_dir: Path,
        *,
        operator_home: Path | None = None,
        max_copies: int = 20,
        max_bytes: int = 512 * 1024 * 1024,
        excluded: Collection[str] = EXCLUDED,
    ) -> None:
        self._homes = data_dir / "homes"
        self._copies = data_dir / "copies"
        self._shadows = data_dir / SHADOWS
        self._operator_home = operator_home or Path.home()
        self._max_copies = max_copies
        self._max_bytes = max_bytes
        self._excluded = frozenset(excluded)
        self._locks: weakref.WeakValueDictionary[str, asyncio.Lock] = weakref.WeakValueDictionary()
        self._agents: dict[str, AgentSpec] = {}  # by session
        self._taken: dict[str, list[Manifest]] = {}  # copies that are not on the disk yet, by session
        self._settling: dict[str, asyncio.Task[None]] = {}

    async def prepare(self, session_id: str, agent: AgentSpec) -> Path:
        home = self._home(session_id)
        async with self._lock(session_id):
            self._agents[session_id] = agent
            await asyncio.to_thread(self._make, home)
        return home

    async def attach(self, session_id: str, files: Sequence[FileRow]) -> list[Path]:
        home = self._home(session_id)
        async with self._lock(session_id):
            return await asyncio.to_thread(self._attach, home, files)

    async def keep(
        self, session_id: str, turn_index: int, agent_session_id: str, live: LiveAgent | None
    ) -> None:
        """A home that cannot be copied costs a copy, never a turn: the reason is in the server's log."""
        home = self._home(session_id)
        async with self._lock(session_id):
            if live is not None:
                await asyncio.sleep(self._settle_secs(session_id))
            copies = self._of(session_id)
            stop = threading.Event()

            def take() -> Manifest:
                with live.paused() if live is not None else contextlib.nullcontext():
                    self._link(home)
                    return copies.take(home, turn_index, agent_session_id, stop)

            try:
                taken = await _finish(take, stop)
            except (NoCopy, OSError) as error:
                log.warning("no copy of the home: %s", error, extra={"session_id": session_id})
            else:
                self._taken.setdefault(session_id, []).append(taken)
            if session_id not in self._settling:
                self._settling[session_id] = asyncio.create_task(self._settle(session_id))

    async def restore(self, session_id: str, turn_index: int) -> str | None:
        return await self.branch(session_id, session_id, turn_index)

    async def branch(self, source: str, target: str, turn_index: int) -> str | None:
        """Without a whole copy the target's home stays as it is: the caller gives a transcript instead."""
        home = self._home(target)
        async with contextlib.AsyncExitStack() as locks:
            for session_id in sorted({source, target}):
                await locks.enter_async_context(self._lock(session_id))
                await self._settled(session_id)
            try:
                manifest = await asyncio.to_thread(self._swap, self._of(source), home, turn_index)
            except OSError as error:
                log.warning("the home could not be put back: %s", error, extra={"session_id": target})
                return None
        if manifest is None:
            return None
        if source != target:
            await self.keep(target, turn_index, manifest.agent_session_id, None)
        return manifest.agent_session_id

    async def forget(self, session_id: str, after_turn: int) -> None:
        async with self._lock(session_id):
            await self._settled(session_id)
            await asyncio.to_thread(self._of(session_id).forget, after_turn)

    async def remove(self, session_id: str) -> None:
        checked_id(session_id)
        async with self._lock(session_id):
            await self._settled(session_id)
            self._agents.pop(session_id, None)
            await asyncio.to_thread(self._remove, session_id)

    def names(self) -> list[str]:
        """Of which sessions there are homes or copies."""
        found = {path.name for folder in (self._homes, self._copies) for path in folder.iterdir()}
        return sorted(name for name in found if not name.startswith("."))

    async def discard(self, session_id: str) -> bool:
        await self.remove(session_id)
        return True

    async def close(self) -> None:
        """Wait for the copies that are on their way to the disk."""
        for session_id in list(self._settling):
            await self._settled(session_id)

    def sweep_halves(self) -> None:
        """At the start: finish or throw away what a crash left half done. Blocking."""
        for folder in (self._homes, self._copies, self._shadows):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            folder.chmod(0o700)
            for path in folder.glob(".*"):
                home = folder / path.name.removeprefix(".old-")
                if path.name.startswith(".old-") and not home.exists():
                    path.rename(home)
                else:
                    delete_tree(path)
        for mark in self._copies.glob(f"*/{UNSETTLED}"):
            self._of(mark.parent.name).prune()

    def _home(self, session_id: str) -> Path:
        return self._homes / checked_id(session_id)

    def _of(self, session_id: str) -> Copies:
        folder = self._copies / checked_id(session_id)
        return Copies(folder, max_copies=self._max_copies, max_bytes=self._max_bytes, excluded=self._excluded)

    def _lock(self, session_id: str) -> asyncio.Lock:
        return self._locks.setdefault(session_id, asyncio.Lock())

    async def _settle(self, session_id: str) -> None:
        """Bring copies to the disk while the next turn runs; several that wait go together."""
        try:
            copies, crowded = self._of(session_id), session_id not in self._taken
            while taken := self._taken.pop(session_id, None):
                await self._attempt(session_id, partial(copies.settle, taken))
                crowded = crowded or copies.crowded(taken)
            lock = self._lock(session_id)
            # Whoever holds the lock may be copying, and objects without a name are its own.
            if not lock.locked():
                async with lock:
                    await self._attempt(session_id, copies.prune if crowded else copies.calm)
        finally:
            self._settling.pop(session_id, None)

    def _settle_secs(self, session_id: str) -> float:
        """Some agents write their memory a moment after they have answered."""
        agent = self._agents.get(session_id)
        return float(agent.quirks.get("settle_ms", 0)) / 1000 if agent is not None else 0.0

    async def _settled(self, session_id: str) -> None:
        while task := self._settling.get(session_id):
            await asyncio.shield(task)

    async def _attempt(self, session_id: str, work: Callable[[], None]) -> None:
        try:
            await asyncio.to_thread(work)
        except OSError as error:
            log.warning("a copy of the home was lost: %s", error, extra={"session_id": session_id})

    def _attach(self, home: Path, files: Sequence[FileRow]) -> list[Path]:
        self._make(home)
        return [attachments.place(home, row) for row in files]

    def _make(self, home: Path) -> None:
        for folder in (self._homes, home, home / TEMPORARY):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        home.chmod(0o700)
        agent = self._agents.get(home.name)
        if agent is not None:
            home_settings.place(home, agent, self._operator_home)
        self._link(home)

    def _link(self, home: Path) -> None:
        agent = self._agents.get(home.name)
        if agent is not None:
            credentials.link(home, agent.credentials, self._operator_home)

    def _swap(self, copies: Copies, home: Path, turn_index: int) -> Manifest | None:
        """Build beside, then exchange by two renames; a crash between them is mended by the sweep."""
        self._homes.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = self._homes / f".new-{secrets.token_hex(8)}"
        old = self._homes / f".old-{home.name}"
        manifest = copies.load(turn_index) if turn_index else Manifest(0, "", 0)
        try:
            if manifest is None or not copies.build(manifest, fresh):
                return None
            delete_tree(old)
            if home.exists():
                home.rename(old)
            fresh.rename(home)
            with contextlib.suppress(FileNotFoundError):
                (old / attachments.FOLDER).rename(home / attachments.FOLDER)
            self._make(home)
            sync_folder(self._homes)
        finally:
            delete_tree(fresh)
            if home.exists():
                delete_tree(old)
            elif old.exists():
                old.rename(home)
        return manifest if turn_index else None

    def _remove(self, session_id: str) -> None:
        for folder in (self._homes, self._copies, self._shadows):
            gone = folder / f".gone-{secrets.token_hex(8)}"
            with contextlib.suppress(FileNotFoundError):
                (folder / session_id).rename(gone)
                delete_tree(gone)


async def _finish(work: Callable[[], T], stop: threading.Event) -> T:
    """Run in a thread and never leave it running: when cancelled, it is told to stop and waited for."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # seen; the cancel is what counts
        raise
