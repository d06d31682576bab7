"""Reads the trees that were recorded of workspaces, and compares them: implements core's `Trees`."""

import contextlib
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

from clawdforge.core.models.file_changes import FileChanges, FileDiff
from clawdforge.core.ports.trees import TreesUnread
from clawdforge.core.running.fair_slots import FairSlots
from clawdforge.drivers.folders.home_lock import run_to_end
from clawdforge.drivers.folders.homes import SHADOWS, check_id
from clawdforge.drivers.folders.recorded_turns import find_tree, list_recorded, read_tree_name
from clawdforge.drivers.folders.tree_diff import (
    COMPARE,
    MAX_DIFF,
    MAX_LIST,
    SHOW,
    find_pair,
    name_paths,
    read_changes,
    read_diff,
)
from clawdforge.drivers.processes.helpers import HelperFailed, Helpers, hold_folder

T = TypeVar("T")
AT_ONCE: Final = 2
GIT_SECS: Final = 15.0


class Trees:
    """Nothing here waits for, or holds up, whoever records: objects never change, and a tree has a name."""

    def __init__(self, data_dir: Path, helpers: Helpers, git: str | None = None) -> None:
        self._folder = data_dir.resolve() / SHADOWS
        self._helpers = helpers
        self._git = git or shutil.which("git")
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="trees")
        self._slots = FairSlots(AT_ONCE)

    async def find(self, session_id: str, turn_index: int) -> str | None:
        return find_tree(self._place(session_id), turn_index)

    async def find_oldest(self, session_id: str) -> tuple[int, str] | None:
        place = self._place(session_id)
        for turn_index in list_recorded(place):
            if tree := find_tree(place, turn_index):
                return turn_index, tree
        return None

    async def find_begun(self, session_id: str) -> str | None:
        return read_tree_name(self._place(session_id) / "refs" / "forked" / "begun")

    async def explain_missing(self, session_id: str, turn_index: int) -> str | None:
        with contextlib.suppress(FileNotFoundError):
            return (self._place(session_id) / "missing" / str(turn_index)).read_text()
        return None

    async def compare(self, app: str, session_id: str, old: str, new: str) -> FileChanges:
        def work() -> FileChanges:
            return read_changes(
                self._run(app, session_id, MAX_LIST, *COMPARE, "--raw", "--numstat", old, new)
            )

        return FileChanges() if old == new else await self._do(app, work)

    async def diff(self, app: str, session_id: str, old: str, new: str, path: str) -> FileDiff | None:
        def work() -> FileDiff | None:
            pair = find_pair(self._run(app, session_id, MAX_LIST, *COMPARE, "--raw", old, new), path)
            if pair is None:
                return None
            return read_diff(self._run(app, session_id, MAX_DIFF, *SHOW, old, new, "--", *name_paths(pair)))

        return None if old == new else await self._do(app, work)

    async def _do(self, app: str, work: Callable[[], T]) -> T:
        """In a thread, few at a time, and of each app in its turn."""
        await self._slots.take(app)
        try:
            return await run_to_end(work, threads=self._threads)
        except (HelperFailed, OSError) as error:
            raise TreesUnread(str(error)) from error
        finally:
            self._slots.give_back(app)

    def _run(self, app: str, session_id: str, keep: int, *words: str) -> bytes:
        """Git, where it can read this repository and nothing else: not even the workspace is there."""
        if self._git is None:
            raise TreesUnread("git is not installed where the server runs")
        with hold_folder(self._place(session_id), "/repository") as repository:
            env = {
                "PATH": os.environ.get("PATH", os.defpath),
                "HOME": "/nonexistent",
                "LC_ALL": "C",
                "GIT_DIR": self._helpers.place_of(repository),
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_CONFIG_GLOBAL": "/dev/null",
                "GIT_TERMINAL_PROMPT": "0",
                "GIT_OPTIONAL_LOCKS": "0",
            }
            command = [self._git, *words]
            return self._helpers.run(
                command, [repository], cwd=repository, env=env, timeout=GIT_SECS, keep=keep, app=app
            )

    def _place(self, session_id: str) -> Path:
        return self._folder / check_id(session_id)
