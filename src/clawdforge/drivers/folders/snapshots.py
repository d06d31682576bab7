"""Records workspaces' files at turn boundaries, where git is installed: implements core's `Snapshots`."""

import asyncio
import logging
import os
import shutil
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from clawdforge.core.models.rows import SessionRow
from clawdforge.core.pacing.loop_turns import LoopTurns
from clawdforge.core.ports import LiveAgent
from clawdforge.core.services.access import LOCAL_APP
from clawdforge.drivers.folders.fair_threads import FairThreads
from clawdforge.drivers.folders.git_shadow import NoSnapshot, Shadow
from clawdforge.drivers.folders.homes import SHADOWS, check_id
from clawdforge.drivers.folders.ownership import keeping_owner
from clawdforge.drivers.folders.recorded_turns import has_files, is_empty, note_empty_turn
from clawdforge.drivers.folders.tree_walk import TreeTooLarge
from clawdforge.drivers.processes.helpers import Helpers
from clawdforge.wire.errors import AgentStartFailed, Conflict, Unsupported

T = TypeVar("T")
log = logging.getLogger(__name__)
THREADS = 8
SHARE = 2
"""How many of the threads one app can use: its workspaces may make git wait for a minute."""

MOST_REST_SECS = 0.5


class Snapshots:
    """Covers workspaces that the server made, and those that are git repositories."""

    def __init__(
        self, data_dir: Path, helpers: Helpers, git: str | None = None, *, turns: LoopTurns | None = None
    ) -> None:
        """`turns` know whether others are about."""
        self._turns = turns or LoopTurns()
        self._folder = data_dir.resolve() / SHADOWS
        self._place = str(self._folder)  # after every turn, and far faster
        self._helpers = helpers
        self._git = git or shutil.which("git")
        threads = ThreadPoolExecutor(THREADS, thread_name_prefix="snapshot")
        self._threads = FairThreads(threads, THREADS, self._turns.charge)
        self._shares: weakref.WeakValueDictionary[str, asyncio.Semaphore] = weakref.WeakValueDictionary()
        self._locks: weakref.WeakValueDictionary[str, asyncio.Lock] = weakref.WeakValueDictionary()

    async def record_first(self, session: SessionRow) -> None:
        shadow = self._find_shadow(session)
        if shadow is not None and not shadow.has_turns():
            await self._record(session, shadow, 0, None)

    async def record_turn(self, session: SessionRow, turn_index: int, live: LiveAgent | None) -> None:
        """A workspace that cannot be recorded never fails the turn; an undo of its files says why."""
        shadow = self._find_shadow(session)
        if shadow is not None:
            await self._record(session, shadow, turn_index, live)

    def has_files(self, session: SessionRow) -> bool:
        return not session.own_cwd or has_files(f"{self._place}/{session.session_id}")

    def record_empty(self, session: SessionRow, turn_index: int) -> bool:
        """Without the lock: nobody else writes the list that this adds to while the session's turn lasts."""
        place = f"{self._place}/{session.session_id}"
        if self._git is None:
            return True  # as `record_turn` would: nothing can be recorded
        try:
            if has_files(place) or not is_empty(session.cwd):
                return False
            note_empty_turn(place, turn_index)
        except OSError:
            return False
        return True

    async def _record(
        self, session: SessionRow, shadow: Shadow, turn_index: int, live: LiveAgent | None
    ) -> None:
        def work() -> None:
            try:
                shadow.record_turn(turn_index, live.pause() if live is not None else None)
            except (NoSnapshot, OSError) as error:
                log.warning(
                    "the workspace was not recorded: %s", error, extra={"session_id": session.session_id}
                )
                shadow.note_missing(turn_index, str(error))

        try:
            await self._run(session.app_name, session.session_id, work)
        except OSError as error:
            log.warning("no snapshot, and no note of it: %s", error, extra={"session_id": session.session_id})

    async def tree_of(self, session: SessionRow, turn_index: int) -> str:
        shadow = self._need_shadow(session)
        tree = shadow.find_turn(turn_index)
        if tree is None:
            why = shadow.find_missing(turn_index)
            because = f" ({why})" if why else ""
            raise Unsupported(
                f"the workspace's files were not recorded at that point{because}; undo without files"
            )
        return tree

    async def record_present(self, session: SessionRow) -> str:
        shadow = self._need_shadow(session)
        try:
            return await self._run(session.app_name, session.session_id, shadow.record_present)
        except (NoSnapshot, OSError) as error:
            raise Conflict(
                f"the workspace's present files cannot be recorded, so nothing was undone: {error}"
            ) from error

    async def restore(self, session: SessionRow, tree: str) -> None:
        shadow = self._need_shadow(session)
        try:
            await self._run(session.app_name, session.session_id, lambda: _put_back(session, shadow, tree))
        except (NoSnapshot, OSError, TreeTooLarge, AgentStartFailed) as error:
            raise Conflict(
                f"the history was changed, but the workspace's files could not be restored: {error}"
            ) from error

    async def branch(self, source: SessionRow, target: str, through: int) -> None:
        if self._git is None:
            return
        folder = self._folder / check_id(source.session_id)
        shadow = Shadow(folder, self._folder, self._git, self._helpers, app=source.app_name)
        if not shadow.has_turns():
            return
        copy = self._folder / check_id(target)
        try:
            await self._run(source.app_name, source.session_id, lambda: shadow.copy_to(copy, through))
        except OSError as error:
            log.warning("the fork cannot undo files: %s", error, extra={"session_id": source.session_id})

    def _find_shadow(self, session: SessionRow) -> Shadow | None:
        """None where the workspace cannot be recorded."""
        workspace = Path(session.cwd)
        if self._git is None or not (session.own_cwd or os.path.lexists(workspace / ".git")):
            return None
        folder = self._folder / check_id(session.session_id)
        identity, app = session.workspace_identity, session.app_name
        return Shadow(folder, workspace, self._git, self._helpers, identity, app=app)

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

    async def _run(self, app: str, session_id: str, work: Callable[[], T]) -> T:
        """In a thread. Work whose caller is cancelled keeps its place, and its caller, until it has ended."""
        lock = self._locks.setdefault(session_id, asyncio.Lock())
        async with lock:
            return await self._run_in_share(app, work)

    async def _run_in_share(self, app: str, work: Callable[[], T]) -> T:
        """Where others are about, a place rests afterwards for as long as the work took.

        Git's processes cost the machine far more than the loop that starts them.
        """
        share = self._shares.setdefault(app, asyncio.Semaphore(SHARE))
        loop = asyncio.get_running_loop()
        await share.acquire()
        begun = loop.time()
        try:
            return await self._threads.run(app, work)
        finally:
            if self._turns.are_others_about(app):
                loop.call_later(min(MOST_REST_SECS, loop.time() - begun), share.release)
            else:
                share.release()


def _put_back(session: SessionRow, shadow: Shadow, tree: str) -> None:
    """The files of an app's workspace stay those of the user that its agents run as."""
    if session.app_name == LOCAL_APP:
        shadow.restore(tree)
        return
    with keeping_owner(Path(session.cwd), ours=session.own_cwd):
        shadow.restore(tree)
