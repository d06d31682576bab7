"""The tables of a settings file: agents, and MCP servers that agents are given."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from clawdforge.settings.kinds import Allowance, Command, FileName, Host, Network, PlainPath, Sandbox, Words
from clawdforge.wire.mcp import McpServer
from clawdforge.wire.quirks import Quirks


class AgentSettings(BaseModel):
    """A new agent, or changes to the built-in one of the same name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: Command | None = None
    driver: str | None = None
    title: str | None = None
    install: str | None = None
    env: Words | None = None
    set_env: dict[str, str] | None = None
    credentials: tuple[FileName, ...] | None = None
    copied: tuple[FileName, ...] | None = None
    settings: dict[FileName, str] | None = None
    version: Command | None = None
    readable: tuple[PlainPath, ...] | None = None
    sandbox: Sandbox | None = None
    network: Network | None = None
    hosts: tuple[Host, ...] | None = None
    allows: tuple[Allowance, ...] | None = None
    callback: bool | None = None
    checkpoints: Literal["home", "database"] | None = None
    quirks: Quirks | None = None


class McpSettings(McpServer):
    """An MCP server for the agents of all apps, or of those in `apps`."""

    apps: Words = ()
