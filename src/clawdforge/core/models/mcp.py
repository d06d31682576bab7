"""MCP servers on their way to an agent: those of the operator, and one that is handed over."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from clawdforge.wire.mcp import McpServer


@dataclass(frozen=True, slots=True)
class OperatorServers:
    """Those of the settings, each with the apps that get it (none named: all), and the server's variables."""

    servers: Mapping[str, tuple[McpServer, frozenset[str]]] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)

    def list_for(self, app: str) -> dict[str, McpServer]:
        return {name: server for name, (server, apps) in self.servers.items() if not apps or app in apps}


@dataclass(frozen=True, slots=True, kw_only=True)
class McpLaunch:
    """One server as an agent is told of it, with its secrets: it has a command or a url."""

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    by_operator: bool = False  # who may say which programs of the machine an agent sees
