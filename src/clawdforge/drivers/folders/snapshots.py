"""Records workspaces' files at turn boundaries, where git is installed: implements core's `Snapshots`."""

import asyncio
import logging
import shutil
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from clawdforge.core.model import SessionRow
from clawdforge.drivers.folders.git_shadow import NoSnapshot, Shadow
from clawdforge.drivers.folders.homes import SHADOWS, check_id
from clawdforge.drivers.processes.helpers import Helpers
from clawdforge.wire.errors import Conflict, Unsupported

T = TypeVar("T")
log = logging.getLogger(__name__)
THREADS = 4


class Snapshots:
    """Covers workspaces that the server made, and those that are git repositories."""

    def __init__(self, data_dir: Path, helpers: Helpers, git: str | None = None) -> None:
        self._folder = data_dir.resolve() / SHADOWS
        self._helpers = helpers
        self._git = git or shutil.which("git")
        # Threads of its own: a workspace that makes git wait must not use up those that everybody shares.
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="snapshot")
        self._locks: weakref.WeakValueDictionary[str, asyncio.Lock] = weakref.WeakValueDictionary()

    async def record_first(self, session: SessionRow) -> None:
        await self._record(session, 0, only_first=True)

    async def record_turn(self, session: SessionRow, turn_index: int) -> None:
        """A workspace that cannot be recorded never fails the turn; its files just cannot be undone."""
        await self._record(session, turn_index)

    async def _record(self, session: SessionRow, turn_index: int, *, only_first: bool = False) -> None:
        try:
            shadow = self._find_shadow(session)
            if shadow is not None and not (only_first and shadow.has_turns()):
                await self._run(session.session_id, lambda: shadow.record_turn(turn_index))
        except (NoSnapshot, OSError) as error:
            log.warning("the workspace was not recorded: %s", error, extra={"session_id": session.session_id})

    async def tree_of(self, session: SessionRow, turn_index: int) -> str:
        tree = self._need_shadow(session).find_turn(turn_index)
        if tree is None:
            raise Unsupported("the workspace's files were not recorded at that point; undo without files")
        return tree

    async def record_present(self, session: SessionRow) -> str:
        shadow = self._need_shadow(session)
        try:
            return await self._run(session.session_id, shadow.record_present)
        except (NoSnapshot, OSError) as error:
            raise Conflict(
                f"the workspace's present files cannot be recorded, so nothing was undone: {error}"
            ) from error

    async def restore(self, session: SessionRow, tree: str) -> None:
        shadow = self._need_shadow(session)
        try:
            await self._run(session.session_id, lambda: shadow.restore(tree))
        except (NoSnapshot, OSError) as error:
            raise Conflict(
                f"the history was changed, but the workspace's files could not be restored: {error}"
            ) from error

    async def branch(self, source: str, target: str) -> None:
        if self._git is None:
            return
        shadow = Shadow(self._folder / check_id(source), self._folder, self._git, self._helpers)
        if not shadow.has_turns():
            return
        try:
            await self._run(source, lambda: shadow.copy_to(self._folder / check_id(target)))
        except OSError as error:
            log.warning("the fork cannot undo files: %s", error, extra={"session_id": source})

    def _find_shadow(self, session: SessionRow) -> Shadow | None:
        """None where the workspace cannot be recorded."""
        workspace = Path(session.cwd)
        if self._git is None or not (session.own_cwd or (workspace / ".git").exists()):
            return None
        return Shadow(self._folder / check_id(session.session_id), workspace, self._git, self._helpers)

    def _need_shadow(self, session: SessionRow) -> Shadow:
        shadow = self._find_shadow(session)
        if shadow is not None:
            return shadow
        if self._git is None:
            raise Unsupported("files can be undone only with git; install git where the server runs")
        raise Unsupported(
            "files can be undone only in a workspace that the server made, or in a git repository;"
            " undo without files, or run `git init` in the workspace"
        )

    async def _run(self, session_id: str, work: Callable[[], T]) -> T:
        lock = self._locks.setdefault(session_id, asyncio.Lock())
        async with lock:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
