"""What core tells a driver and what it is asked in return: agents, launches, questions, answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from clawdforge.core.models.mcp import McpLaunch
from clawdforge.wire.base import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
    """A named, configured program. What differs between agents is data here, never a branch in a driver."""

    name: str
    driver: str
    command: tuple[str, ...]
    title: str = ""
    install: str = ""
    env: tuple[str, ...] = ()  # names of variables that it may see
    set_env: Mapping[str, str] = field(default_factory=dict)
    credentials: tuple[str, ...] = ()  # files under the operator's home that all sessions share
    copied: tuple[str, ...] = ()  # files under the operator's home that each new home gets a copy of
    settings: Mapping[str, str] = field(default_factory=dict)  # files for a new home: name -> text
    version: tuple[str, ...] = ("--version",)  # the arguments that make its program tell its version
    readable: tuple[str, ...] = ()  # paths that it may read, besides what its program is found to need
    sandbox: str | None = None  # auto, full, off; None is the server's setting
    network: Literal["open", "none", "proxy"] | None = None  # None is the server's setting
    hosts: tuple[str, ...] = ()  # what it may reach with the network `proxy`
    allows: tuple[str, ...] = ()  # what its filter of system calls leaves open
    callback: bool = False  # it is given a token of its own, bound to its session
    checkpoints: Literal["home", "database"] = "home"  # where a graph keeps its memory
    quirks: Mapping[str, Any] = field(default_factory=dict)

    @property
    def keys(self) -> tuple[str, ...]:
        """The variables that can sign it in; one of them is enough."""
        return tuple(name for name in self.env if name.endswith(("_API_KEY", "_TOKEN")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Everything a driver needs to bring a session's agent to life."""

    app: str
    session_id: str
    agent: AgentSpec
    cwd: Path
    home: Path
    model: str | None = None
    plan_mode: bool = False
    agent_session_id: str | None = None  # to be loaded or resumed; None starts a new one
    workspace_identity: str | None = None  # the folder that `cwd` must be
    counter: Json | None = None  # the agent's running totals as its last turn left them
    readable: tuple[Path, ...] = ()  # files outside home and workspace that it may read
    env: Mapping[str, str] = field(default_factory=dict)  # the server's own word to this one agent
    mcp: tuple[McpLaunch, ...] = ()  # whose tools it is to have


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A permission request as the agent put it."""

    tool: str
    kind: str | None
    options: tuple[Json, ...]
    request: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the agent is told: an option's id, or None for cancelled."""

    option_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What a turn has used so far; None where the agent has not told.

    `usage` is all that it has told, in the shape of an answer's: it counts if no answer comes any more.
    """

    tokens: int | None = None
    cost_usd: float | None = None
    tool_calls: int = 0
    usage: Json | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How the agent ended a prompt."""

    stop_reason: str
    usage: Json | None = None
