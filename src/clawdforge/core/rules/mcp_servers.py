"""Which MCP servers a session's agent is given: the operator's, the app's, its own, with their secrets."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from clawdforge.core.models.mcp import McpLaunch, OperatorServers
from clawdforge.core.models.rows import SessionRow
from clawdforge.core.ports import View
from clawdforge.wire.base import Json
from clawdforge.wire.errors import AgentStartFailed, InvalidRequest
from clawdforge.wire.mcp import CONTROL, McpServer, fill_value


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
    of_operator = operator.list_for(view.app)
    of_app = _read(app.mcp_servers) if app else {}
    of_session = _read(session.mcp_servers)
    secrets = view.secrets() if of_app or of_session else {}
    found: list[McpLaunch] = []
    for name, server in sorted({**of_operator, **of_app, **of_session}.items()):
        is_owned = name in of_session or name in of_app
        values = secrets if is_owned else operator.variables
        where = "the secrets of this app" if is_owned else "the server's environment"
        found.append(_fill(name, server, values, where, by_operator=name not in of_session))
    return tuple(found)


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
        return {key: fill_value(value, secrets) for key, value in values.items()}

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
