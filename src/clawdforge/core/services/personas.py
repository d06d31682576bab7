"""Personas: a name for an agent with its model, permission mode and instructions. One is built in."""

from clawdforge.core.clock import Clock
from clawdforge.core.models.rows import PersonaRow
from clawdforge.core.ports import Agents, Store, Tx
from clawdforge.core.rules.permission_modes import choose_mode
from clawdforge.core.rules.personas import BUILTIN, builtin_persona, find_persona
from clawdforge.core.running.elsewhere import Elsewhere
from clawdforge.wire.admin import PutPersona
from clawdforge.wire.errors import Conflict, PersonaNotFound


class PersonaService:
    def __init__(self, store: Store, clock: Clock, agents: Agents, elsewhere: Elsewhere) -> None:
        self._store = store
        self._clock = clock
        self._agents = agents
        self._elsewhere = elsewhere

    async def list(self, app: str) -> list[PersonaRow]:
        """All personas, the built-in one first."""
        own = await self._store.read(app, lambda view: view.personas())
        return [builtin_persona(app, self._agents.default), *own]

    async def get(self, app: str, name: str) -> PersonaRow:
        return await self._store.read(app, lambda view: find_persona(view, name, self._agents.default))

    async def put(self, app: str, name: str, request: PutPersona, *, may_decide: bool = True) -> PersonaRow:
        """Make or replace a persona. Sessions that were made with it stay unchanged."""
        _check_own(name)
        choose_mode(request.permission_mode, None, may_decide=may_decide)  # refuses what may not be named
        if request.agent not in self._elsewhere.agents:
            self._agents.spec(request.agent)
        row = PersonaRow(
            app_name=app,
            name=name,
            agent=request.agent,
            created_at=self._clock.now(),
            model=request.model,
            permission_mode=request.permission_mode,
            instructions=request.instructions,
            plan_mode=request.plan_mode,
        )
        await self._store.write(app, lambda tx: tx.put_persona(row))
        return row

    async def remove(self, app: str, name: str) -> None:
        _check_own(name)

        def work(tx: Tx) -> None:
            if not tx.remove_persona(name):
                raise PersonaNotFound

        await self._store.write(app, work)


def _check_own(name: str) -> None:
    if name == BUILTIN:
        raise Conflict(f"{BUILTIN} is built in and cannot be changed; make a persona with another name")
