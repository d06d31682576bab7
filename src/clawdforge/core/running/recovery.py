"""After a crash: ends interrupted turns, runs queued ones, and removes folders that no session knows.

Interrupted turns are ended before the port opens: one transaction for each session and one commit for many
of them, so that a crash during recovery does no harm. Work that may take longer, such as removing folders, is
found before the port opens and done after.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Protocol

from clawdforge.core.model import Clock
from clawdforge.core.ports import Store
from clawdforge.core.rules.interrupted import end_interrupted_turn
from clawdforge.core.running.supervisor import Supervisor
from clawdforge.wire.errors import ForgeError

log = logging.getLogger(__name__)
CUT_OFF = "the server stopped while this turn ran; what was said until then is kept"
BATCH = 200


class Folders(Protocol):
    """Folders that are named after sessions."""

    def names(self) -> list[str]:
        """The ids of the sessions that have such folders. Blocking."""
        ...

    async def discard(self, session_id: str) -> bool:
        """Remove the folders of a session that was never created; whether there were any."""
        ...


class RecoveryService:
    def __init__(
        self, store: Store, clock: Clock, supervisor: Supervisor, folders: Sequence[Folders]
    ) -> None:
        self._store = store
        self._clock = clock
        self._supervisor = supervisor
        self._folders = folders
        self._found: list[tuple[Folders, list[str]]] = []

    async def end_interrupted_turns(self) -> int:
        """End the turns that a dead server left running; returns how many sessions had one."""
        unsettled = await self._store.read_system(lambda view: view.active_sessions())
        for first in range(0, len(unsettled), BATCH):
            some = unsettled[first : first + BATCH]
            await asyncio.gather(*(self._end_interrupted_turn(app, session_id) for app, session_id in some))
        return len(unsettled)

    async def wake_all(self) -> int:
        """Start the queued turns; returns how many sessions have some."""
        waiting = await self._store.read_system(lambda view: view.waiting_sessions())
        for app, session_id in waiting:
            self._supervisor.wake(app, session_id)
        return len(waiting)

    async def note_folders(self) -> None:
        """Note which folders there are, while nobody can be making one for a session to come."""
        self._found = [(folders, await asyncio.to_thread(folders.names)) for folders in self._folders]

    async def remove_unknown_folders(self) -> int:
        """Remove the noted folders that belong to no session; how many. Slow, and nobody waits for it."""
        removed = 0
        for folders, names in self._found:
            for first in range(0, len(names), BATCH):
                removed += await self._remove_unknown(folders, names[first : first + BATCH])
        if removed:
            log.info("removed %d folders of sessions that were never created", removed)
        return removed

    async def _remove_unknown(self, folders: Folders, names: Sequence[str]) -> int:
        try:
            unknown = await self._store.read_system(lambda view: view.unknown_sessions(names))
        except ForgeError:
            return 0  # the next start looks again
        removed = 0
        for name in unknown:
            try:
                removed += await folders.discard(name)
            except (OSError, ValueError):
                log.exception("a folder that belongs to no session stays", extra={"session_id": name})
        return removed

    async def _end_interrupted_turn(self, app: str, session_id: str) -> None:
        now = self._clock.now()
        await self._store.write(app, lambda tx: end_interrupted_turn(tx, session_id, CUT_OFF, now))
