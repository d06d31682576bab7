"""Which MCP servers a session's agent is given: the operator's, the app's, its own, with their secrets."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from clawdforge.core.mcp_model import McpLaunch, OperatorServers
from clawdforge.core.model import SessionRow
from clawdforge.core.ports import View
from clawdforge.wire.base import Json
from clawdforge.wire.errors import AgentStartFailed, InvalidRequest
from clawdforge.wire.mcp import CONTROL, REFERENCE, McpServer


def write_servers(servers: Mapping[str, McpServer]) -> Json:
    """As a row keeps them."""
    return {name: server.model_dump(exclude_defaults=True) for name, server in servers.items()}


def name_servers(kept: Any) -> list[str]:
    """The names of what a row keeps, whatever somebody has put there by hand."""
    return sorted(map(str, kept)) if isinstance(kept, dict) else []


def check_secrets(servers: Mapping[str, McpServer], known: Mapping[str, str]) -> None:
    """Refuse a server whose secrets the app does not have."""
    for name, server in servers.items():
        for secret in server.list_secrets():
            if secret not in known:
                raise InvalidRequest(
                    f"the MCP server {name} needs the secret {secret}, which this app does not have;"
                    " the operator gives it with POST /admin/apps"
                )


def plan_servers(view: View, session: SessionRow, operator: OperatorServers) -> tuple[McpLaunch, ...]:
    """By name; of the same name the session's own comes before the app's, and that before the operator's."""
    app = view.app_row()
    found = {
        name: _fill(name, server, operator.variables, "the server's environment", by_operator=True)
        for name, server in operator.list_for(view.app).items()
    }
    owned = ((app.mcp_servers if app else {}, True), (session.mcp_servers, False))
    if any(kept for kept, _ in owned):
        secrets = view.secrets()
        for kept, by_operator in owned:
            for name, server in _read(kept).items():
                found[name] = _fill(name, server, secrets, "the secrets of this app", by_operator=by_operator)
    return tuple(found[name] for name in sorted(found))


def _read(kept: Any) -> dict[str, McpServer]:
    try:
        given = kept if isinstance(kept, dict) else {}
        return {str(name): McpServer.model_validate(server) for name, server in given.items()}
    except ValidationError as error:
        raise AgentStartFailed("an MCP server of this session cannot be read; name it again") from error


def _fill(
    name: str, server: McpServer, secrets: Mapping[str, str], where: str, *, by_operator: bool
) -> McpLaunch:
    """With its secrets in place. One that is missing is said: without its tools the agent is another one."""
    for secret in server.list_secrets():
        if secret not in secrets:
            raise AgentStartFailed(f"the MCP server {name} needs {secret}, which is not in {where}")

    def fill(values: Mapping[str, str]) -> dict[str, str]:
        return {key: REFERENCE.sub(lambda found: secrets[found[1]], value) for key, value in values.items()}

    headers = fill(server.headers)
    if any(CONTROL.search(value) for value in headers.values()):
        raise AgentStartFailed(f"a secret of the MCP server {name} has a character that no header can have")
    return McpLaunch(
        name=name,
        command=tuple(server.command or ()),
        url=server.url or "",
        env=fill(server.env),
        headers=headers,
        by_operator=by_operator,
    )
