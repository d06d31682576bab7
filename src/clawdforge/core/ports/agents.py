"""What core asks of agents, their drivers, homes and workspaces. Implemented in `drivers`."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from pathlib import Path
from typing import Literal, Protocol

from clawdforge.core.models.agents import AgentSpec, Answer, Ask, Launch, Used, Verdict
from clawdforge.core.models.events import AgentEvent, Words
from clawdforge.core.models.rows import FileRow, SessionRow
from clawdforge.core.models.workspaces import Workspace
from clawdforge.wire.admin import AgentPage
from clawdforge.wire.disk import DiskForm


class Sink(Protocol):
    """Where a live agent's events go while a prompt runs, and outside of one."""

    async def emit(self, event: AgentEvent, size: int) -> None:
        """One message of the agent, in order; `size` is its line's. Returns when there is room for more."""
        ...

    async def emit_words(self, words: Words) -> None:
        """The same for several messages at once."""
        ...

    async def report_truncation(self, dropped: int, reason: str) -> None:
        """Record that the driver dropped something: a line that was too long, or output beyond the limit."""
        ...

    def note_usage(self, used: Used) -> None:
        """What the running prompt has used so far, whenever the agent tells more of it."""
        ...

    async def ask(self, request: Ask) -> Verdict: ...


class LiveAgent(Protocol):
    """One agent, ready for prompts of one session. Every method is bounded in time."""

    agent_session_id: str
    how: Literal["new", "loaded", "resumed"]
    remembered: list[str] | None
    """The user's texts that a load replayed: evidence of what it still knows. None when it did not say."""
    answered: str | None
    """The end of the last answer that a load replayed; None when it did not say."""
    mcp_servers: tuple[str, ...]
    """The names of the MCP servers that it was told of."""
    note: str | None
    """What differs from the request, such as a plan mode that this agent lacks; the driver logs it."""

    @property
    def alive(self) -> bool: ...
    async def prompt(
        self, text: str, sink: Sink, *, preface: str = "", traceparent: str | None = None
    ) -> Answer:
        """Raises AgentError with the agent's own words; a cancel is an Answer with its stop reason.

        `preface` is what the agent must know first and is not the caller's prompt. `traceparent` tells the
        agent which span of a trace it works below, where it can be told.
        """
        ...

    async def cancel(self) -> None:
        """Ask the running prompt to stop. The caller ends an agent that does not react."""
        ...

    def pause(self) -> AbstractContextManager[None]:
        """Stop the whole process tree for the moment of a copy.

        Called from a thread: the loop goes on meanwhile, and the agent may end or be closed there.
        """
        ...

    async def close(self) -> None:
        """End the agent and everything it started; nothing of it is left when this returns."""
        ...


class Capability(StrEnum):
    """What a driver can do beyond prompts and cancel. Each agent may still be able to do less."""

    RETURN = "return"  # come back to a session with the agent's own memory
    EVIDENCE = "evidence"  # and tell what of it the agent still has
    PERMISSIONS = "permissions"  # the session decides each request; else one for a whole turn
    PLAN_MODE = "plan_mode"
    USAGE = "usage"
    CLIENT_FILES = "client_files"  # the agent reads and writes through us, held to the session's mode
    CLIENT_TERMINALS = "client_terminals"
    MCP = "mcp"  # the agent is told of MCP servers
    LONG_LINES = "long_lines"  # messages as long as the setting allows; else what is too long fails the turn


class Driver(Protocol):
    @property
    def capabilities(self) -> frozenset[Capability]: ...
    async def open(self, launch: Launch, sink: Sink) -> LiveAgent:
        """Start the agent. `sink` gets what it sends outside of prompts, but not the replay of a load."""
        ...


class Homes(Protocol):
    """The private folders of agents, and their copies at turn boundaries."""

    async def prepare(self, session_id: str, agent: AgentSpec) -> Path: ...
    async def attach(self, session_id: str, files: Sequence[FileRow]) -> list[Path]:
        """Put uploads where the session's agent can read them, under their own names."""
        ...

    async def copy_home(
        self,
        session_id: str,
        turn_index: int,
        agent_session_id: str,
        live: LiveAgent | None,
        app: str = "",
        beside: Callable[[], None] | None = None,
    ) -> None:
        """Copy the home as it is after that turn. The number of copies is limited; the oldest are deleted.

        Those of one app wait for each other, and not for long for those of others. What is to be
        done `beside` the same thread does before, with a few system calls.
        """
        ...

    async def restore(self, session_id: str, turn_index: int) -> str | None:
        """Put the home back as it was after that turn (0: empty); the agent's session id, or None."""
        ...

    async def branch(self, source: str, target: str, turn_index: int) -> str | None:
        """Give another session the home as it was after that turn; likewise."""
        ...

    async def remove(self, session_id: str) -> None: ...


class Snapshots(Protocol):
    """The files of workspaces as they were at turn boundaries. A tree is the name of one such state."""

    async def record_first(self, session: SessionRow) -> None:
        """Record the workspace as it is before the session's first turn, unless that was done before."""
        ...

    async def record_turn(self, session: SessionRow, turn_index: int, live: LiveAgent | None) -> None:
        """Record the workspace as it is after that turn, where that is possible.

        The agent, if it lives, stands still meanwhile.
        """
        ...

    def has_files(self, session: SessionRow) -> bool:
        """Whether files of the workspace were recorded before, or may have been. A look at one name."""
        ...

    def record_empty(self, session: SessionRow, turn_index: int) -> bool:
        """Record that it is empty after that turn, and was before. False: `record_turn` finds out what it is.

        Blocks for a few system calls.
        """
        ...

    async def tree_of(self, session: SessionRow, turn_index: int) -> str:
        """The tree of a turn's end (0: before the first); Unsupported says why there is none."""
        ...

    async def record_present(self, session: SessionRow) -> str:
        """Record the workspace as it is now, on stable storage; returns its tree."""
        ...

    async def restore(self, session: SessionRow, tree: str) -> None:
        """Make the workspace what it was. What is ignored there is left alone. Conflict when it fails."""
        ...

    async def branch(self, source: SessionRow, target: str, through: int) -> None:
        """Give another session of the same workspace what is known of it up to that turn."""
        ...


class FolderSizes(Protocol):
    """How much of the disk the folders of a session take."""

    async def measure(self, session_id: str, workspace: str | None) -> dict[DiskForm, int]:
        """Of its home, its copies, its snapshots, and of the folder of that name that we made to work in."""
        ...


class Workspaces(Protocol):
    """The folders that agents work in."""

    def make(self, session_id: str) -> Workspace:
        """A fresh one of our own."""
        ...

    async def set_aside(self, session_id: str) -> bool:
        """Remove one of our own that is empty, since its session was refused; whether there was one."""
        ...

    def check(self, path: str, granted: Sequence[str] = (), *, anywhere: bool = False) -> Workspace:
        """A folder that a caller named; WorkspaceRefused when it may not be used.

        `granted` are the app's own roots, beside those of all apps. `anywhere` is for the operator's own app,
        which may use every folder as long as there are no roots.
        """
        ...

    def own_path(self, name: str) -> str:
        """Where the folder of that name is that `make` makes."""
        ...

    def is_own(self, path: str) -> bool:
        """Whether this names a folder of our own, whoever has the session that it was made for."""
        ...

    def check_root(self, path: str) -> str:
        """A folder that may be granted to an app, as it is kept; InvalidRequest when it cannot be."""
        ...

    def identify(self, path: str, identity: str | None) -> str:
        """The identity of a session's folder; WorkspaceChanged when it is not the recorded one."""
        ...

    def is_place(self, identity: str | None) -> bool:
        """Whether the data folder still is the one of that identity."""
        ...

    def place(self) -> str:
        """The identity of the data folder."""
        ...

    def remove(self, session_id: str) -> None: ...


class Agents(Protocol):
    """What can be run here."""

    default: str

    def spec(self, name: str) -> AgentSpec:
        """Raises UnknownAgent."""
        ...

    def driver(self, spec: AgentSpec) -> Driver: ...
    def specs(self) -> Mapping[str, AgentSpec]: ...
    def is_usable(self, name: str) -> bool:
        """Whether there is such an agent, and its program is installed."""
        ...


class Catalog(Protocol):
    """The same, as callers see it."""

    def page(self) -> AgentPage:
        """Without running anything."""
        ...
