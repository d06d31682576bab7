"""How an ACP conversation begins: what both sides can do, and a session that is new, loaded or resumed."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from clawdforge import __version__
from clawdforge.core.models.agents import Launch
from clawdforge.core.models.mcp import McpLaunch
from clawdforge.drivers.acp.client import CAPABILITIES
from clawdforge.drivers.acp.updates import word_of
from clawdforge.jsonrpc.rpc import RpcError
from clawdforge.wire.base import Json
from clawdforge.wire.errors import AgentStartFailed
from clawdforge.wire.json_bounds import write_briefly
from clawdforge.wire.quirks import Quirks

PROTOCOL_VERSION: Final = 1
MAX_REPLAY_BYTES: Final = 32 * 1024 * 1024
MAX_ANSWER_CHARS: Final = 1000
MAX_LOGIN_METHODS: Final = 100
MAX_NAME_CHARS: Final = 200
STATE_KINDS: Final = frozenset(
    {
        "available_commands_update",
        "config_option_update",
        "current_mode_update",
        "session_info_update",
        "usage_update",
    }
)
"""Updates about the state of a session, not about the conversation in it."""

Call = Callable[[str, Json], Awaitable[Json]]


class LoadLost(Exception):
    """The agent ended while it was loading its session."""


@dataclass(frozen=True, slots=True)
class OpenedSession:
    """The session that the agent opened, and what it said about it."""

    session_id: str
    how: Literal["new", "loaded", "resumed"]
    settings: Json
    note: str | None = None


@dataclass(slots=True)
class Replay:
    """Collects what the user had said, and the end of the last answer, from the updates that a load sends."""

    _parts: list[list[str]] = field(default_factory=list)
    _last: Any = None
    _open: bool = False
    _size: int = 0
    _answer: str = ""

    def answer(self) -> str:
        return self._answer

    def texts(self) -> list[str] | None:
        """One text for each prompt; None when the replay was too long to be kept."""
        return None if self._size > MAX_REPLAY_BYTES else ["".join(parts) for parts in self._parts]

    def take(self, update: Mapping[str, Any]) -> None:
        content = update.get("content")
        text = content.get("text") if isinstance(content, dict) else None
        text = text if isinstance(text, str) else ""
        if word_of(update) == "agent_message_chunk":
            self._answer = (self._answer + text)[-MAX_ANSWER_CHARS:]
        if word_of(update) != "user_message_chunk":
            self._open = False
            return
        self._answer = ""
        self._size += len(text) + 64
        if self._size > MAX_REPLAY_BYTES:
            self._parts.clear()
            self._open = False
            return
        name = update.get("messageId")
        if self._open and name == self._last:
            self._parts[-1].append(text)
        else:
            self._parts.append([text])
        self._open, self._last = True, name


class Handshake:
    """One start of one agent. `call` is bounded in time and raises RpcError with the agent's words."""

    def __init__(self, launch: Launch, call: Call) -> None:
        self._launch = launch
        self._call = call
        self._abilities: Json = {}
        self.login_methods: list[str] = []

    async def initialize(self) -> None:
        said = await self._call(
            "initialize",
            {
                "protocolVersion": PROTOCOL_VERSION,
                "clientCapabilities": CAPABILITIES,
                "clientInfo": {"name": "clawdforge", "title": "clawdforge", "version": __version__},
            },
        )
        version = said.get("protocolVersion", PROTOCOL_VERSION)
        if version != PROTOCOL_VERSION:
            spoken = write_briefly(version, MAX_NAME_CHARS)
            raise AgentStartFailed(
                f"{self._launch.agent.name} speaks version {spoken} of the protocol, not"
                f" {PROTOCOL_VERSION}; install a version of it that does"
            )
        self._abilities = _dict(said.get("agentCapabilities"))
        methods = said.get("authMethods")
        for method in methods[:MAX_LOGIN_METHODS] if isinstance(methods, list) else []:
            name = _dict(method).get("name") or _dict(method).get("id")
            self.login_methods += [write_briefly(name, MAX_NAME_CHARS)] if name else []

    async def open(self) -> OpenedSession:
        """Load or resume where the launch wants it and the agent can; else a new session."""
        wanted = self._launch.agent_session_id
        note = None
        if wanted is not None:
            method, how = self._choose_return()
            if method is None or how is None:
                note = "it can neither load nor resume a session"
            else:
                try:
                    settings = await self._call(method, {"sessionId": wanted, **self._session_params()})
                    return OpenedSession(wanted, how, settings)
                except RpcError as error:
                    note = f"{method} failed: {error.describe()}"
        settings = await self._call("session/new", self._session_params())
        session_id = settings.get("sessionId")
        if not isinstance(session_id, str) or not session_id:
            raise AgentStartFailed(f"{self._launch.agent.name} answered session/new without a sessionId")
        return OpenedSession(session_id, "new", settings, note)

    def _choose_return(self) -> tuple[str | None, Literal["loaded", "resumed"] | None]:
        """Prefer a load, which shows what the agent remembers. A quirk can rule either way out."""
        quirks = Quirks.model_validate(self._launch.agent.quirks)
        if self._abilities.get("loadSession") is True and quirks.load:
            return "session/load", "loaded"
        resume = _dict(self._abilities.get("sessionCapabilities")).get("resume")
        if resume not in (None, False) and quirks.resume:
            return "session/resume", "resumed"
        return None, None

    def _session_params(self) -> Json:
        servers = [_write_server(server) for server in self._launch.mcp if self._can_use(server)]
        return {"cwd": str(self._launch.cwd), "mcpServers": servers}

    def list_servers(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of the MCP servers that it is told of, and of those that it could not reach."""
        told = tuple(server.name for server in self._launch.mcp if self._can_use(server))
        return told, tuple(server.name for server in self._launch.mcp if server.name not in told)

    def _can_use(self, server: McpLaunch) -> bool:
        """Every agent starts programs; whether it speaks HTTP to a server it has said."""
        return not server.url or _dict(self._abilities.get("mcpCapabilities")).get("http") is True


def _write_server(server: McpLaunch) -> Json:
    if server.url:
        return {"type": "http", "name": server.name, "url": server.url, "headers": _pairs(server.headers)}
    command, *words = server.command
    return {"name": server.name, "command": command, "args": words, "env": _pairs(server.env)}


def _pairs(values: Mapping[str, str]) -> list[Json]:
    return [{"name": name, "value": value} for name, value in values.items()]


def _dict(value: Any) -> Json:
    return value if isinstance(value, dict) else {}
