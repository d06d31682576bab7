"""The private folder of each session's agent, and its copies: implements core's `Homes`."""

import asyncio
import contextlib
import logging
import os
import re
import secrets
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Collection, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final

from clawdforge.core.models.agents import AgentSpec
from clawdforge.core.models.rows import FileRow
from clawdforge.core.ports import LiveAgent
from clawdforge.disk import sync_folder
from clawdforge.drivers.folders import app_credentials, attachments, credentials, home_settings
from clawdforge.drivers.folders.fair_threads import FairThreads
from clawdforge.drivers.folders.home_copies import MARK, Copies, NoCopy
from clawdforge.drivers.folders.home_lock import HomeLock, run_to_end
from clawdforge.drivers.folders.home_manifest import Manifest
from clawdforge.drivers.folders.home_saving import Saving
from clawdforge.drivers.folders.shared_sync import SharedSync
from clawdforge.drivers.folders.stillness import look_at, until_still
from clawdforge.drivers.folders.tree_removal import delete_tree, delete_tree_in_slices
from clawdforge.drivers.folders.tree_walk import open_folder, open_folder_below
from clawdforge.drivers.processes.environment import TEMPORARY
from clawdforge.wire.quirks import Quirks

log = logging.getLogger(__name__)

THREADS = 8
KNOWN: Final = 256
"""Of so many sessions the last copy is remembered, so that the next one need not read it."""

SHADOWS = "shadows"
"""The folder of workspaces' recorded files; a session's part is removed together with its home."""

LOST = "lost"
"""What belonged to sessions that the database does not know. Nothing in it is ever removed by a server."""

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
    ".deno",
    ".gradle",
    ".m2",
    ".nuget",
    ".local/pipx",
    ".local/share/pnpm",
    ".local/share/uv",
    "go/pkg",
)
"""What is not part of any agent's memory: caches of programs, and what we put there ourselves."""


def check_id(session_id: str) -> str:
    """Return the id if it is safe as a file name."""
    if not re.fullmatch(r"[0-9A-Za-z_-]{1,64}", session_id):
        raise ValueError("a session id may contain only letters, digits, - and _")
    return session_id


class HomeFolders:
    """Names that start with a dot are unfinished work: `.new-`, `.old-<id>`, `.gone-`."""

    def __init__(
        self,
        data_dir: Path,
        *,
        operator_home: Path | None = None,
        max_copies: int = 20,
        max_bytes: int = 512 * 1024 * 1024,
        excluded: Collection[str] = EXCLUDED,
    ) -> None:
        self._data_dir = data_dir
        self._homes = data_dir / "homes"
        self._copies = data_dir / "copies"
        self._shadows = data_dir / SHADOWS
        self._lost = data_dir / LOST
        self._operator_home = operator_home or Path.home()
        self._max_copies = max_copies
        self._max_bytes = max_bytes
        self._excluded = frozenset(excluded)
        self._locks: weakref.WeakValueDictionary[str, HomeLock] = weakref.WeakValueDictionary()
        self._agents: dict[str, AgentSpec] = {}  # by session
        self._taken: dict[str, list[Manifest]] = {}  # copies that a loss of power may take, by session
        self._saving: dict[str, Saving] = {}
        self._known: OrderedDict[str, Copies] = OrderedDict()  # with what they remember, the latest last
        self._threads = FairThreads(ThreadPoolExecutor(THREADS, thread_name_prefix="home"), THREADS)
        self._sync = SharedSync(ThreadPoolExecutor(1, thread_name_prefix="home-sync"))

    def charge_to(self, charge: Callable[[str, float], None]) -> None:
        """Call this with an app and the seconds that copies for it have computed."""
        self._threads.charge_to(charge)

    async def prepare(self, session_id: str, agent: AgentSpec) -> Path:
        home = self._home(session_id)
        async with self._lock(session_id):
            if self._agents.get(session_id, agent).name != agent.name:
                self._known.pop(session_id, None)  # it leaves out what the agent before could fetch again
            self._agents[session_id] = agent
            await run_to_end(partial(self._make_home, home))
        return home

    async def attach(self, session_id: str, files: Sequence[FileRow]) -> list[Path]:
        home = self._home(session_id)
        async with self._lock(session_id):
            return await run_to_end(partial(self._attach, home, files))

    async def copy_home(
        self,
        session_id: str,
        turn_index: int,
        agent_session_id: str,
        live: LiveAgent | None,
        app: str = "",
        beside: Callable[[], None] | None = None,
    ) -> None:
        """A home that cannot be copied never fails the turn: the copy is missing, and the log says why."""
        home = self._home(session_id)
        async with self._lock(session_id):
            quiet = 0.0 if live is None else self._quiet_secs(session_id)
            if quiet > 0:
                await until_still(partial(look_at, home, self._list_excluded(session_id)), quiet)
            copies = self._find_copies(session_id)
            stop = threading.Event()

            def take() -> Manifest:
                if beside is not None:
                    beside()
                if live is not None and not self._moves_credentials(home):
                    taken = copies.take_beside(home, turn_index, agent_session_id, stop)
                    if taken is not None:
                        return taken
                with live.pause() if live is not None else contextlib.nullcontext():
                    self._link_credentials(home)
                    return copies.take(home, turn_index, agent_session_id, stop)

            try:
                taken = await self._threads.run(app, take, stop)
            except (NoCopy, OSError) as error:
                log.warning("the home was not copied: %s", error, extra={"session_id": session_id})
            else:
                self._taken.setdefault(session_id, []).append(taken)
            self._start_saving(session_id, app)
            if session_id not in self._taken or copies.has_large(self._taken[session_id]):
                self._saving[session_id].hurry()

    def _start_saving(self, session_id: str, app: str) -> None:
        if session_id not in self._saving:
            saving = self._saving[session_id] = Saving()
            saving.task = asyncio.create_task(self._make_durable(session_id, saving, app))
            saving.task.add_done_callback(partial(_log_failure, session_id))

    async def restore(self, session_id: str, turn_index: int) -> str | None:
        return await self.branch(session_id, session_id, turn_index)

    async def branch(self, source: str, target: str, turn_index: int) -> str | None:
        """Without a whole copy the target's home stays unchanged; the caller gives a transcript instead."""
        home = self._home(target)
        async with contextlib.AsyncExitStack() as locks:
            for session_id in sorted({source, target}):
                await locks.enter_async_context(self._lock(session_id))
                await self._wait_durable(session_id)
            try:
                manifest = await run_to_end(partial(self._swap, self._copies_of(source), home, turn_index))
            except OSError as error:
                log.warning("the home could not be restored: %s", error, extra={"session_id": target})
                return None
        if manifest is None:
            return None
        if source != target:
            await self.copy_home(target, turn_index, manifest.agent_session_id, None)
        return manifest.agent_session_id

    async def adopt(self, session_id: str, built: Path, turn_index: int, agent_session_id: str) -> None:
        """A folder that was built beside the homes becomes the session's, as it was after that turn."""
        async with self._lock(session_id):
            await self._wait_durable(session_id)
            self._known.pop(session_id, None)
            await run_to_end(partial(self._put_in_place, built, self._home(session_id)))
        await self.copy_home(session_id, turn_index, agent_session_id, None)

    async def remove(self, session_id: str) -> None:
        check_id(session_id)
        async with self._lock(session_id):
            await self._wait_durable(session_id)
            self._agents.pop(session_id, None)
            self._known.pop(session_id, None)
            for gone in await run_to_end(partial(self._take_away, session_id)):
                await delete_tree_in_slices(gone)

    def names(self) -> list[str]:
        """The ids of sessions that have a home or copies."""
        there = [folder for folder in (self._homes, self._copies) if folder.is_dir()]
        found = {path.name for folder in there for path in folder.iterdir()}
        return sorted(name for name in found if not name.startswith("."))

    async def set_aside(self, session_id: str) -> bool:
        """Move what there is of the session to `lost`: it may be all that its agent remembers."""
        check_id(session_id)
        async with self._lock(session_id):
            await self._wait_durable(session_id)
            self._known.pop(session_id, None)
            return await run_to_end(partial(self._set_aside, session_id))

    async def close(self) -> None:
        """Wait for the copies that are still being written to the disk."""
        for session_id in list(self._saving):
            await self._wait_durable(session_id)

    def clean_up_unfinished(self) -> None:
        """At the server's start: finish or throw away what a crash left unfinished. Blocks."""
        for folder in (self._homes, self._copies, self._shadows):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            folder.chmod(0o700)
            for path in folder.glob(".*"):
                home = folder / path.name.removeprefix(".old-")
                if path.name.startswith(".old-") and not home.exists():
                    path.rename(home)
                else:
                    delete_tree(path)
        for mark in self._copies.glob(f"*/{MARK}"):
            self._copies_of(mark.parent.name).prune()

    def _home(self, session_id: str) -> Path:
        return self._homes / check_id(session_id)

    def _copies_of(self, session_id: str) -> Copies:
        folder = self._copies / check_id(session_id)
        excluded = self._list_excluded(session_id)
        return Copies(folder, max_copies=self._max_copies, max_bytes=self._max_bytes, excluded=excluded)

    def _list_excluded(self, session_id: str) -> frozenset[str]:
        agent = self._agents.get(session_id)
        own = Quirks.model_validate(agent.quirks).caches if agent is not None else ()
        return self._excluded.union(own)

    def _find_copies(self, session_id: str) -> Copies:
        found = self._known.pop(session_id, None) or self._copies_of(session_id)
        self._known[session_id] = found
        if len(self._known) > KNOWN:
            self._known.popitem(last=False)
        return found

    def _lock(self, session_id: str) -> HomeLock:
        return self._locks.setdefault(session_id, HomeLock())

    async def _make_durable(self, session_id: str, saving: Saving, app: str) -> None:
        """Write copies to the disk while the next turns run; those of a second are written together."""
        try:
            await saving.wait()
            copies, prune_now = self._find_copies(session_id), session_id not in self._taken
            while taken := self._taken.pop(session_id, None):
                await self._attempt(session_id, self._sync.sync(copies.make_durable))
                prune_now = prune_now or copies.needs_pruning(taken)
            dropped: set[str] = set()
            if prune_now:
                await self._alone(session_id, app, lambda: dropped.update(copies.drop_old()))
                remove = partial(copies.remove_objects, dropped)
                await self._attempt(session_id, self._threads.run(app, remove))
            await self._alone(session_id, app, copies.clear_mark)
        finally:
            self._saving.pop(session_id, None)
        if session_id in self._taken:  # while old ones were removed
            self._start_saving(session_id, app)

    async def _alone(self, session_id: str, app: str, work: Callable[[], object]) -> None:
        """With the home's lock, or not at all: nothing here ever waits, and the next copy does it instead.

        Whoever holds the lock may be taking a copy, whose objects have no manifest yet; and whoever waits for
        it may be about to wait for us.
        """
        lock = self._lock(session_id)
        if lock.is_free:
            async with lock:
                await self._attempt(session_id, self._threads.run(app, work))

    def _quiet_secs(self, session_id: str) -> float:
        """Some agents write their memory a moment after they have answered, and later on a busy machine."""
        agent = self._agents.get(session_id)
        return float(agent.quirks.get("settle_ms", 0)) / 1000 if agent is not None else 0.0

    async def _wait_durable(self, session_id: str) -> None:
        while (saving := self._saving.get(session_id)) and saving.task:
            saving.hurry()
            self._sync.hurry()
            await asyncio.wait([saving.task])

    async def _attempt(self, session_id: str, work: Coroutine[Any, Any, object]) -> None:
        try:
            await work
        except OSError as error:
            log.warning("a copy of the home was lost: %s", error, extra={"session_id": session_id})

    def _attach(self, home: Path, files: Sequence[FileRow]) -> list[Path]:
        self._make_home(home)
        return [attachments.attach_file(home, row) for row in files]

    def _make_home(self, home: Path) -> None:
        for folder in (self._homes, home):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open_folder(home) as opened, open_folder_below(home, (TEMPORARY,)):
            os.fchmod(opened, 0o700)
        agent = self._agents.get(home.name)
        if agent is not None:
            home_settings.write_settings(home, agent, self._operator_home)
        self._link_credentials(home)

    def _link_credentials(self, home: Path) -> None:
        agent = self._agents.get(home.name)
        if agent is not None:
            credentials.link_files(home, agent.credentials, self._operator_home)
            shared = credentials.shared_files(agent.credentials, self._operator_home)
            app_credentials.exchange_known(self._data_dir, home, shared)

    def _moves_credentials(self, home: Path) -> bool:
        """Whether `_link_credentials` may have something to do; the agent stands still for that."""
        agent = self._agents.get(home.name)
        if agent is None or not agent.credentials:
            return False
        return not credentials.are_linked(
            home, agent.credentials, self._operator_home
        ) or app_credentials.has_copies(self._data_dir, home.stat().st_uid)

    def _swap(self, copies: Copies, home: Path, turn_index: int) -> Manifest | None:
        """Build the home beside the old one, then swap them."""
        self._homes.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = self._homes / f".new-{secrets.token_hex(8)}"
        manifest = copies.load(turn_index) if turn_index else Manifest(0, "", 0)
        try:
            if manifest is None or not copies.build(manifest, fresh):
                return None
            self._put_in_place(fresh, home)
        finally:
            delete_tree(fresh)
        return manifest if turn_index else None

    def _put_in_place(self, fresh: Path, home: Path) -> None:
        """By two renames. After a crash between the two, `clean_up_unfinished` puts the old one back."""
        old = self._homes / f".old-{home.name}"
        try:
            delete_tree(old)
            if home.exists():
                home.rename(old)
            fresh.rename(home)
            with contextlib.suppress(FileNotFoundError):
                (old / attachments.FOLDER).rename(home / attachments.FOLDER)
            self._make_home(home)
            sync_folder(self._homes)
        finally:
            if home.exists():
                delete_tree(old)
            elif old.exists():
                old.rename(home)

    def _set_aside(self, session_id: str) -> bool:
        lost = self._lost / f"{session_id}.{secrets.token_hex(4)}"
        found = [
            folder for folder in (self._homes, self._copies, self._shadows) if (folder / session_id).exists()
        ]
        for folder in found:
            lost.mkdir(parents=True, exist_ok=True, mode=0o700)
            (folder / session_id).rename(lost / folder.name)
        return bool(found)

    def _take_away(self, session_id: str) -> list[Path]:
        """Take the names away from all that a session has; the next start deletes what a crash leaves."""
        taken: list[Path] = []
        for folder in (self._homes, self._copies, self._shadows):
            gone = folder / f".gone-{secrets.token_hex(8)}"
            with contextlib.suppress(FileNotFoundError):
                (folder / session_id).rename(gone)
                taken.append(gone)
        return taken


def _log_failure(session_id: str, task: asyncio.Task[None]) -> None:
    failure = None if task.cancelled() else task.exception()
    if failure is not None:
        log.error("the copies of a home were not written", exc_info=failure, extra={"session_id": session_id})
