"""Apps as the operator sees them: their limits, and what they have used."""

from dataclasses import dataclass

from clawdforge.core.model import AppRow, Clock
from clawdforge.core.ports import Store, SystemTx, SystemView
from clawdforge.core.services.access import check_app_name
from clawdforge.wire.admin import Limits
from clawdforge.wire.base import Json


@dataclass(frozen=True, slots=True)
class AppState:
    """An app's row, its sessions and its tokens that are not revoked."""

    row: AppRow
    sessions: int
    tokens: int


class AppService:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def list_apps(self) -> list[AppState]:
        return await self._store.read_system(_list_states)

    async def put(self, app_name: str, limits: Limits) -> AppState:
        """Make the app, or change its limits; they apply from the next request on."""
        check_app_name(app_name)
        row = AppRow(app_name=app_name, created_at=self._clock.now(), **limits.model_dump())

        def work(tx: SystemTx) -> AppState:
            tx.put_app(row)
            return next(state for state in _list_states(tx) if state.row.app_name == app_name)

        return await self._store.write_system(work)

    async def usage(self) -> list[Json]:
        return await self._store.read_system(lambda view: view.usage())


def _list_states(view: SystemView) -> list[AppState]:
    sessions = view.session_counts()
    tokens: dict[str, int] = {}
    for token in view.tokens():
        if token.revoked_at is None:
            tokens[token.app_name] = tokens.get(token.app_name, 0) + 1
    return [AppState(row, sessions.get(row.app_name, 0), tokens.get(row.app_name, 0)) for row in view.apps()]
