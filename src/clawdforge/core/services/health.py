"""What the server says about itself: whether it is alive and ready, and how its agents are contained."""

from clawdforge.core.ports import Store
from clawdforge.core.running.pool import AgentPool
from clawdforge.wire.admin import Health, Ready


class HealthService:
    def __init__(self, store: Store, pool: AgentPool, facts: dict[str, object]) -> None:
        self._store = store
        self._pool = pool
        self._facts = facts
        self.stopping = False

    def learn(self, **facts: object) -> None:
        """Add facts that were found out after the start."""
        self._facts.update(facts)

    async def health(self) -> Health:
        count = await self._store.read_system(lambda view: view.count_open_sessions())
        live = {"open_sessions": count, "live_agents": self._pool.live}
        return Health.model_validate({**self._facts, **live, "sqlite_version": self._store.version()})

    async def ready(self) -> Ready:
        reason = "the server is stopping" if self.stopping else self._store.health()
        return Ready(ok=reason is None, store="ok" if reason is None else "unavailable", reason=reason)
