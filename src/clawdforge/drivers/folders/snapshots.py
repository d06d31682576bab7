"""The files of workspaces at turn boundaries, where git is installed: implements core's `Snapshots`."""

import asyncio
import logging
import shutil
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from clawdforge.core.model import SessionRow
from clawdforge.drivers.folders.git_shadow import NoSnapshot, Shadow
from clawdforge.drivers.folders.homes import SHADOWS, checked_id
from clawdforge.wire.errors import Conflict, Unsupported

T = TypeVar("T")
log = logging.getLogger(__name__)


class Snapshots:
    """Only of workspaces of our own, and of those that are git repositories."""

    def __init__(self, data_dir: Path, git: str | None = None) -> None:
        self._folder = data_dir / SHADOWS
        self._git = git or shutil.which("git")
        self._locks: weakref.WeakValueDictionary[str, asyncio.Lock] = weakref.WeakValueDictionary()

    async def begin(self, session: SessionRow) -> None:
        shadow = self._of(session)
        if shadow is not None and not shadow.known():
            await self.take(session, 0)

    async def take(self, session: SessionRow, turn_index: int) -> None:
        """A workspace that cannot be kept costs an undo of files, never a turn."""
        shadow = self._of(session)
        if shadow is None:
            return
        try:
            await self._run(session.session_id, lambda: shadow.take(turn_index))
        except (NoSnapshot, OSError) as error:
            log.warning("the workspace was not kept: %s", error, extra={"session_id": session.session_id})

    async def find(self, session: SessionRow, turn_index: int) -> str:
        tree = self._needed(session).turn(turn_index)
        if tree is None:
            raise Unsupported("the workspace was not kept as it was at that point; undo without files")
        return tree

    async def keep(self, session: SessionRow) -> str:
        shadow = self._needed(session)
        try:
            return await self._run(session.session_id, shadow.keep)
        except (NoSnapshot, OSError) as error:
            raise Conflict(
                f"the workspace cannot be kept as it is, so nothing was undone: {error}"
            ) from error

    async def restore(self, session: SessionRow, tree: str) -> None:
        shadow = self._needed(session)
        try:
            await self._run(session.session_id, lambda: shadow.restore(tree))
        except (NoSnapshot, OSError) as error:
            raise Conflict(
                f"the history was changed, but the workspace could not be put back: {error}"
            ) from error

    async def branch(self, source: str, target: str) -> None:
        if self._git is None:
            return
        shadow = Shadow(self._folder / checked_id(source), self._folder, self._git)
        if not shadow.known():
            return
        try:
            await self._run(source, lambda: shadow.copy_to(self._folder / checked_id(target)))
        except OSError as error:
            log.warning("what is known of the workspace stays there: %s", error, extra={"session_id": source})

    def _of(self, session: SessionRow) -> Shadow | None:
        """None where the workspace is not one that can be kept."""
        workspace = Path(session.cwd)
        if self._git is None or not (session.own_cwd or (workspace / ".git").exists()):
            return None
        return Shadow(self._folder / checked_id(session.session_id), workspace, self._git)

    def _needed(self, session: SessionRow) -> Shadow:
        shadow = self._of(session)
        if shadow is not None:
            return shadow
        if self._git is None:
            raise Unsupported("files can be undone only with git; install it where the server runs")
        raise Unsupported(
            "files can be undone only in a workspace of the server's own, or in one that is a git repository;"
            " undo without files"
        )

    async def _run(self, session_id: str, work: Callable[[], T]) -> T:
        lock = self._locks.setdefault(session_id, asyncio.Lock())
        async with lock:
            return await asyncio.to_thread(work)
