"""What a program needs, as it was found a moment ago: agents of a kind are started in crowds.

The walk takes 1 to 3 ms of the one thread that starts agents, and finds something else only where the
operator has installed something meanwhile. Which folders agents write is a part of the question.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from clawdforge.drivers.processes.mounts import Mount, is_below
from clawdforge.drivers.processes.runtimes import NAMED_FILES, NAMED_FOLDERS, OF_SESSIONS, Finder, Needs

MOMENT_SECS: Final = 0.5
Found = tuple[tuple[Mount, ...], tuple[Path, ...]]
"""The mounts, and which of them lie in folders that other agents write."""


class RecentRuntimes:
    """Remembers the last walk. For one thread."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._own = tuple(f"{data_dir}/{name}" for name in OF_SESSIONS)
        self._question: object = None
        self._found: Found = ((), ())
        self._until = 0.0

    def find(
        self, needs: Needs, env: Mapping[str, str], closed: Sequence[Path], written: frozenset[str]
    ) -> Found:
        """As `Finder` finds it. Folders of sessions are closed for all, so whose they are does not matter."""
        others = tuple(path for path in closed if not any(is_below(str(path), own) for own in self._own))
        variables = tuple(env.get(name) for name in ("PATH", *NAMED_FILES, *NAMED_FOLDERS))
        question = (needs, variables, others, written)
        if question != self._question or time.monotonic() > self._until:
            finder = Finder(env, data_dir=self._data_dir, closed=closed, written=written)
            finder.add_needs(needs, env)
            self._question, self._found = question, (finder.mounts, finder.list_written())
            self._until = time.monotonic() + MOMENT_SECS
        return self._found
