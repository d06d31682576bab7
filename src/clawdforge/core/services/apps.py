"""Apps as the operator sees them: their limits, the folders granted to them, and what they have used."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from clawdforge.core.clock import Clock
from clawdforge.core.models.rows import AppRow, PauseRow
from clawdforge.core.ports import Store, SystemTx, SystemView, Workspaces
from clawdforge.core.rules.mcp_servers import write_servers
from clawdforge.core.running.supervisor import Supervisor
from clawdforge.core.services.access import check_app_name
from clawdforge.core.services.shares import NOTHING, Allowed, Counted, ShareService, Used, count_all
from clawdforge.wire.admin import Limits
from clawdforge.wire.base import Json
from clawdforge.wire.errors import InvalidRequest
from clawdforge.wire.mcp import MAX_SECRETS, McpServer


@dataclass(frozen=True, slots=True)
class AppState:
    """An app's row, its sessions, its tokens that are not revoked, its pause, and what it has."""

    row: AppRow
    sessions: int
    tokens: int
    pause: PauseRow | None = None
    counted: Counted = NOTHING
    secrets: tuple[str, ...] = ()  # their names


class AppService:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        workspaces: Workspaces,
        shares: ShareService,
        supervisor: Supervisor,
    ) -> None:
        self._store = store
        self._clock = clock
        self._workspaces = workspaces
        self._shares = shares
        self._supervisor = supervisor

    async def list_apps(self) -> list[AppState]:
        return await self._store.read_system(_list_states)

    def shares_of(self, state: AppState) -> tuple[Allowed, Used]:
        """What the app may have and what it has, of all that has a limit."""
        app = state.row.app_name
        return self._shares.allowed(state.row, app), self._shares.used(app, state.counted)

    async def put(
        self,
        app_name: str,
        limits: Limits | None,
        roots: Sequence[str] | None,
        servers: Mapping[str, McpServer] | None = None,
        secrets: Mapping[str, str] | None = None,
    ) -> AppState:
        """Make the app, or replace its limits, its folders or its MCP servers, or some of its secrets.

        None leaves them as they are. Servers and secrets are for agents that start from now on.
        """
        check_app_name(app_name)
        now = self._clock.now()
        changes = {} if limits is None else limits.model_dump()
        if roots is not None:
            changes["workspace_roots"] = await self._check_roots(app_name, roots)
        if servers is not None:
            changes["mcp_servers"] = write_servers(servers)

        def work(tx: SystemTx) -> AppState:
            row = replace(tx.app_row(app_name) or AppRow(app_name, now), **changes)
            tx.put_app(row)
            _put_secrets(tx, app_name, secrets or {})
            if roots is not None:
                tx.audit_system(app_name, "folders_granted", now, {"folders": list(row.workspace_roots)})
            if servers is not None or secrets is not None:
                names = {"mcp_servers": sorted(servers or ()), "secrets": sorted(secrets or ())}
                tx.audit_system(app_name, "tools_given", now, names)
            return next(state for state in _list_states(tx) if state.row.app_name == app_name)

        state = await self._store.write_system(work)
        self._shares.forget(app_name)
        self._supervisor.limit_agents(app_name, state.row)
        return state

    async def _check_roots(self, app_name: str, roots: Sequence[str]) -> tuple[str, ...]:
        """A folder that was granted before is not looked at: others can be changed while it is away."""
        row = await self._store.read_system(lambda view: view.app_row(app_name))
        before = () if row is None else row.workspace_roots
        checked = (root if root in before else self._workspaces.check_root(root) for root in roots)
        return tuple(dict.fromkeys(checked))

    async def usage(self) -> list[Json]:
        return await self._store.read_system(lambda view: view.usage())


def _put_secrets(tx: SystemTx, app_name: str, secrets: Mapping[str, str]) -> None:
    for name, value in secrets.items():
        tx.put_secret(app_name, name, value)
    kept = sum(app == app_name for app, _ in tx.secret_names())
    if kept > MAX_SECRETS:
        raise InvalidRequest(f"an app may have {MAX_SECRETS} secrets, and this would be {kept}; remove some")


def _list_states(view: SystemView) -> list[AppState]:
    sessions = view.session_counts()
    tokens: dict[str, int] = {}
    for token in view.tokens():
        if token.revoked_at is None:
            tokens[token.app_name] = tokens.get(token.app_name, 0) + 1
    pauses = {pause.app_name: pause for pause in view.pauses() if not pause.agent}
    counted = count_all(view)
    secrets: dict[str, tuple[str, ...]] = {}
    for app, name in view.secret_names():
        secrets[app] = (*secrets.get(app, ()), name)
    names = ((row, row.app_name) for row in view.apps())
    return [
        AppState(
            row,
            sessions.get(app, 0),
            tokens.get(app, 0),
            pauses.get(app),
            counted.get(app, NOTHING),
            secrets.get(app, ()),
        )
        for row, app in names
    ]
