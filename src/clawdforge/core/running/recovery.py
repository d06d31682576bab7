"""After a crash: ends interrupted turns, runs queued ones, and sets aside folders that no session knows.

Interrupted turns are ended before the port opens: one transaction for each session and one commit for many
of them, so that a crash during recovery does no harm. Work that may take longer, such as moving folders, is
found before the port opens and done after.
"""

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from clawdforge.core.clock import Clock
from clawdforge.core.ports import Store, Workspaces
from clawdforge.core.rules.budgets import Spending
from clawdforge.core.rules.interrupted import adopt
from clawdforge.core.rules.purses import settle_run
from clawdforge.core.running.supervisor import Supervisor
from clawdforge.wire.errors import ForgeError, SessionDamaged, Unavailable

log = logging.getLogger(__name__)
CUT_OFF = "the server stopped while this turn ran; what was said until then is kept"
BATCH = 200
TOO_MANY = (
    "%d of %d folders belong to sessions that the database does not know: it may be older than they are."
    " They stay where they are; put the right database back, or see `clawdforge doctor`"
)


class Folders(Protocol):
    """Folders that are named after sessions."""

    def names(self) -> list[str]:
        """The ids of the sessions that have such folders. Blocking."""
        ...

    async def set_aside(self, session_id: str) -> bool:
        """Move the folders of a session that has no row out of the way; whether there were any.

        Nothing that holds something is deleted: the row may have been lost, and not the session.
        """
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
        self._damaged: set[str] = set()  # sessions; each was told of once

    async def end_interrupted_turns(self) -> int:
        """End the turns that a dead server left running; returns how many sessions had one.

        A session whose rows are damaged keeps its turn as it is: it must not keep the others from starting.
        """
        found = await self._store.read_system(lambda view: view.cut_off_sessions())
        intact = [pair for pair in found if pair[1] not in self._damaged]
        ended = 0
        for first in range(0, len(intact), BATCH):
            some = intact[first : first + BATCH]
            work = (self._end_interrupted_turn(app, session_id) for app, session_id in some)
            for (_, session_id), failure in zip(
                some, await asyncio.gather(*work, return_exceptions=True), strict=True
            ):
                if isinstance(failure, Unavailable | asyncio.CancelledError):
                    raise failure
                if failure is not None:
                    self._damaged.add(session_id)
                    note = {"session_id": session_id}
                    log.error("a turn that was cut off could not be ended", exc_info=failure, extra=note)
                ended += failure is None
        return ended

    async def settle_lost_runs(self) -> int:
        """Count the one-shot runs that a dead server left, at what they held of budgets; how many."""
        left = await self._store.read_system(lambda view: view.lost_runs())
        now = self._clock.now()
        for app, run_id in left:
            try:
                await self._store.write(app, partial(settle_run, run_id=run_id, spending=Spending(), at=now))
            except SessionDamaged:
                log.exception("what a run held of budgets could not be counted", extra={"run_id": run_id})
        return len(left)

    async def wake_all(self) -> int:
        """Start the queued turns; returns how many sessions have some."""
        waiting = await self._store.read_system(lambda view: view.waiting_sessions())
        for app, session_id in waiting:
            self._supervisor.wake(app, session_id)
        return len(waiting)

    async def notice_move(self, workspaces: Workspaces, folder: str) -> None:
        """When the data folder is a copy, forget which folders its sessions worked in: those are others.

        Not where other nodes have folders of their own.
        """
        if await self._store.read_system(lambda view: view.has_other_folders(folder)):
            return
        if not workspaces.is_place(await self._store.read_system(lambda view: view.place())):
            place = workspaces.place()
            await self._store.write_system(lambda tx: tx.move_to(place))

    async def note_folders(self) -> None:
        """Note which folders there are, while nobody can be making one for a session to come."""
        self._found = [(folders, await asyncio.to_thread(folders.names)) for folders in self._folders]

    async def set_aside_unknown_folders(self) -> None:
        """Move the noted folders that belong to no session out of the way.

        A crash leaves a few of them. When there are more than of known sessions, it is rather the database
        that is not the right one, and all of them stay.
        """
        moved = 0
        for folders, names in self._found:
            unknown = await self._find_unknown(names)
            if len(unknown) * 2 > len(names):
                log.warning(TOO_MANY, len(unknown), len(names))
                continue
            for name in unknown:
                moved += await self._set_aside(folders, name)
        if moved:
            log.warning("%d folders belong to no session and were set aside; see `clawdforge doctor`", moved)

    async def _find_unknown(self, names: Sequence[str]) -> list[str]:
        found: list[str] = []
        for first in range(0, len(names), BATCH):
            some = names[first : first + BATCH]
            try:
                found += await self._store.read_system(lambda view, some=some: view.unknown_sessions(some))  # type: ignore[misc]
            except ForgeError:
                return []  # the next start looks again
        return found

    async def _set_aside(self, folders: Folders, name: str) -> bool:
        try:
            return await folders.set_aside(name)
        except (OSError, ValueError):
            log.exception("a folder that belongs to no session stays", extra={"session_id": name})
            return False

    async def _end_interrupted_turn(self, app: str, session_id: str) -> None:
        node, now = self._supervisor.node, self._clock.now()
        await self._store.write(app, lambda tx: adopt(tx, session_id, node, CUT_OFF, now))
