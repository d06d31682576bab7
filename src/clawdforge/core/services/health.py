"""What the server says about itself: whether it is alive and ready, and how its agents are contained."""

import asyncio
from contextlib import suppress
from typing import Final

from clawdforge.core.clock import SECOND, Clock
from clawdforge.core.models.rows import PauseRow
from clawdforge.core.ports import Store
from clawdforge.core.running.background import Background
from clawdforge.core.running.membership import Membership
from clawdforge.core.running.pool import AgentPool
from clawdforge.core.running.supervisor import Supervisor
from clawdforge.wire.admin import Health, Ready, StuckReply, StuckSession
from clawdforge.wire.base import Micros
from clawdforge.wire.errors import StoreUnavailable

LOOK_SECS: Final = 1.0
"""Whoever asks whether we live waits no longer for a store that does not answer."""


class HealthService:
    def __init__(
        self,
        store: Store,
        pool: AgentPool,
        supervisor: Supervisor,
        background: Background,
        membership: Membership,
        facts: dict[str, object],
        clock: Clock,
    ) -> None:
        self._store = store
        self._supervisor = supervisor
        self._pool = pool
        self._background = background
        self._membership = membership
        self._facts = facts
        self._clock = clock
        self._began = clock.steady()
        self.stopping = False
        self._open_sessions = 0
        self._pauses: list[PauseRow] = []

    def learn(self, **facts: object) -> None:
        """Add facts that were found out after the start."""
        self._facts.update(facts)

    async def health(self) -> Health:
        """While the store is away, with what it said last: whoever asks wants to know whether we live."""
        if self._store.health() is None:
            with suppress(StoreUnavailable, TimeoutError):
                async with asyncio.timeout(LOOK_SECS):
                    self._open_sessions, self._pauses = await self._store.read_system(
                        lambda view: (view.count_open_sessions(), view.pauses())
                    )
        count = self._open_sessions
        paused = any(not pause.app_name and not pause.agent for pause in self._pauses)
        live = {"open_sessions": count, "live_agents": self._pool.live, "paused": paused}
        return Health.model_validate({**self._facts, **live, "sqlite_version": self._store.version()})

    @property
    def now(self) -> Micros:
        """The server's time."""
        return self._clock.now()

    @property
    def uptime_secs(self) -> float:
        return round((self._clock.steady() - self._began) / SECOND, 1)

    @property
    def running_turns(self) -> int:
        """Of all apps."""
        return sum(one.turn is not None for one in self._supervisor.find_waiting(0))

    def stuck(self, longer_than: float) -> StuckReply:
        """What stands still, and what it waits for."""
        found = [
            StuckSession(
                app_name=one.app,
                session_id=one.session_id,
                turn=one.turn,
                waits_for=one.waits_for,
                secs=round(one.secs, 3),
            )
            for one in self._supervisor.find_waiting(longer_than)
        ]
        return StuckReply(sessions=found, count=len(found), tasks=dict(self._background.down))

    async def ready(self) -> Ready:
        store = "the server is stopping" if self.stopping else self._store.health()
        reason = store or ("draining" if self._membership.is_draining else self._background.reason())
        return Ready(ok=reason is None, store="ok" if store is None else "unavailable", reason=reason)
