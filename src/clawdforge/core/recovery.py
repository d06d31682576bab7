"""After a crash: every turn that was cut off is settled, and queued turns run by themselves.

Settling runs before the port opens. It is one transaction for each session, so that a crash in the
middle of recovery is recovered likewise.
"""

import asyncio

from clawdforge.core.model import Clock
from clawdforge.core.ports import Store
from clawdforge.core.settle import settle
from clawdforge.core.supervisor import Supervisor

CUT_OFF = "the server stopped while this turn ran; what was said until then is kept"


class RecoveryService:
    def __init__(self, store: Store, clock: Clock, supervisor: Supervisor) -> None:
        self._store = store
        self._clock = clock
        self._supervisor = supervisor

    async def settle_all(self) -> int:
        """End what a dead server left running."""
        unsettled = await self._store.read_system(lambda view: view.unsettled())
        await asyncio.gather(*(self._settle(app, session_id) for app, session_id in unsettled))
        return len(unsettled)

    async def wake_all(self) -> int:
        """Queued turns run by themselves."""
        waiting = await self._store.read_system(lambda view: view.waiting_sessions())
        for app, session_id in waiting:
            self._supervisor.wake(app, session_id)
        return len(waiting)

    async def _settle(self, app: str, session_id: str) -> None:
        await self._store.write(app, lambda tx: settle(tx, session_id, CUT_OFF, self._clock.now()))
