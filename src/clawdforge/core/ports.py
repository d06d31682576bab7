"""What core asks of the world: a store and agents. Implemented in `stores` and `drivers`.

A store runs *work*: a plain function over a snapshot (`View`) or inside a transaction (`Tx`). The rules
of the product live in such functions, in core; a store knows rows, not rules. Both are bound to one app,
so that no query can reach another's rows. Work may be run again or elsewhere (another thread): it must
touch nothing but its argument. `System…` are the same for what spans apps; they find, and the change is
then made under the app's own name.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from clawdforge.core.histogram import Histogram
from clawdforge.core.model import (
    AgentSpec,
    Answer,
    AppRow,
    Ask,
    AuditRow,
    Commit,
    Draft,
    FileRow,
    Hit,
    Launch,
    MessageRow,
    PermissionRow,
    PersonaRow,
    RunRow,
    SessionQuery,
    SessionRow,
    Stored,
    TokenRow,
    TurnRow,
    Verdict,
)
from clawdforge.wire.admin import AgentPage
from clawdforge.wire.base import Json, Micros

T = TypeVar("T")
Shown = Literal["visible", "all", "cut"]


class View(Protocol):
    """One app's rows in one consistent snapshot. Deleted sessions are not there."""

    app: str

    def app_row(self) -> AppRow | None: ...
    def session(self, session_id: str) -> SessionRow | None: ...
    def sessions(self, query: SessionQuery) -> tuple[list[SessionRow], str | None]:
        """A page and the cursor of the next one, last activity (`updated_at`) first."""
        ...

    def open_sessions(self) -> int:
        """Open sessions with retention `ttl`, of all apps: what the cap counts."""
        ...

    def app_sessions(self) -> int:
        """Open sessions of this app, for its own limit."""
        ...

    def turn(self, session_id: str, turn_index: int) -> TurnRow | None: ...
    def turns(self, session_id: str, *, after: int = 0, limit: int = 100) -> list[TurnRow]: ...
    def turns_from(self, session_id: str, turn_index: int) -> list[TurnRow]: ...
    def active_turn(self, session_id: str) -> TurnRow | None:
        """The turn that is running or waiting; there is at most one."""
        ...

    def queued_turns(self, session_id: str) -> list[TurnRow]:
        """In the order in which they will run."""
        ...

    def turn_by_key(self, session_id: str, key: str) -> TurnRow | None: ...
    def turns_in_flight(self) -> int:
        """Queued, running and waiting turns of the app."""
        ...

    def events(self, session_id: str, *, after: int, limit: int, max_bytes: int) -> list[Stored]:
        """Rising by seq; at least one event if there is one, then as many as fit into `max_bytes`."""
        ...

    def turn_events(
        self, session_id: str, turn_index: int, *, after: int, limit: int, max_bytes: int
    ) -> list[Stored]:
        """Only what the agent sent in that turn."""
        ...

    def messages(
        self, session_id: str, *, after: int = 0, limit: int = 1000, show: Shown = "visible"
    ) -> list[MessageRow]:
        """Rising by seq. `visible` leaves out archived and cut, `all` only cut; `cut` is the cut ones."""
        ...

    def last_messages(self, session_id: str, limit: int, *, show: Shown = "visible") -> list[MessageRow]:
        """The newest `limit`, rising by seq."""
        ...

    def last_message(self, session_id: str, role: str, *, before: int | None = None) -> MessageRow | None:
        """The newest visible one of a role; with `before`, of those with a smaller seq."""
        ...

    def messages_from(self, session_id: str, seq: int, *, show: Shown = "visible") -> list[MessageRow]: ...
    def permission(self, session_id: str, permission_id: str) -> PermissionRow | None: ...
    def permissions(self, session_id: str, *, state: str | None = None) -> list[PermissionRow]: ...
    def granted(self, session_id: str, tool: str, kind: str | None) -> bool:
        """Somebody decided `allow_always` for this tool and kind."""
        ...

    def file(self, file_token: str) -> FileRow | None: ...
    def bytes_stored(self) -> int: ...
    def persona(self, name: str) -> PersonaRow | None: ...
    def personas(self) -> list[PersonaRow]: ...
    def search(
        self, q: str, *, limit: int, cursor: str | None = None, session_id: str | None = None
    ) -> tuple[list[Hit], str | None]:
        """Full text over visible messages, newest first."""
        ...


class Tx(View, Protocol):
    """A transaction for one app. What it raises undoes the whole of it, and only it."""

    def add_session(self, row: SessionRow) -> None: ...
    def change_session(self, session_id: str, **changes: Any) -> None:
        """Set columns by their field names; unknown names are a programming error."""
        ...

    def append(self, session_id: str, drafts: Sequence[Draft], *, fence: int | None = None) -> int:
        """Number and write events, move `head` and `updated_at`; the new head.

        With `fence`, LeaseLost when the session's own has risen since.
        """
        ...

    def claim(self, session_id: str, node: str) -> int:
        """Become the holder: the new fence."""
        ...

    def add_turn(self, row: TurnRow) -> None: ...
    def change_turn(self, session_id: str, turn_index: int, **changes: Any) -> None: ...
    def add_message(self, row: MessageRow) -> int:
        """Its seq; keeps the session's `last_message` and `message_count`, and the search index."""
        ...

    def change_messages(self, session_id: str, seqs: Sequence[int], **changes: Any) -> None:
        """For content, cut, archived, pending and the like; keeps `message_count` and the index right."""
        ...

    def add_permission(self, row: PermissionRow) -> None: ...
    def change_permission(self, session_id: str, permission_id: str, **changes: Any) -> None: ...
    def add_file(self, row: FileRow) -> None: ...
    def remove_file(self, file_token: str) -> None: ...
    def put_persona(self, row: PersonaRow) -> None: ...
    def remove_persona(self, name: str) -> bool: ...
    def add_run(self, row: RunRow) -> None: ...
    def audit(self, session_id: str | None, event: str, at: Micros, details: Json) -> None: ...
    def copy_history(self, source: str, target: str, *, through_turn: int, at: Micros) -> None:
        """For a fork: visible messages and ended turns up to a turn, into a session that has none.

        The copies keep their seq and turn_index; the events are not copied.
        """
        ...

    def purge(self, session_id: str, limit: int) -> bool:
        """Remove up to `limit` rows of a deleted session; True when nothing of it is left but the audit."""
        ...


class SystemView(Protocol):
    """What spans apps: credentials, and where work waits."""

    def apps(self) -> list[AppRow]: ...
    def app_row(self, app_name: str) -> AppRow | None: ...
    def token_by_hash(self, digest: bytes) -> TokenRow | None: ...
    def tokens(self, app_name: str | None = None) -> list[TokenRow]: ...
    def open_sessions(self) -> int: ...
    def session_counts(self) -> dict[str, int]: ...
    def unsettled(self) -> list[tuple[str, str]]:
        """(app, session_id) of every session with a turn that is running or waiting."""
        ...

    def waiting_sessions(self) -> list[tuple[str, str]]:
        """(app, session_id) of every open session with a queued turn and none active, oldest first."""
        ...

    def idle_sessions(self, before: Micros, limit: int) -> list[tuple[str, str]]:
        """Open `ttl` sessions with no queued or active turn, idle since before then."""
        ...

    def closed_sessions(self, before: Micros, limit: int) -> list[tuple[str, str]]:
        """`ttl` sessions closed before then."""
        ...

    def deleted_sessions(self, limit: int) -> list[tuple[str, str]]: ...
    def last_workspace(self, session_id: str) -> str | None:
        """The folder that we made for a session, deleted or not, when no other session works in it."""
        ...

    def turn_counts(self) -> dict[str, int]:
        """Turns that have not ended, by state."""
        ...

    def old_files(self, before: Micros, limit: int) -> list[FileRow]:
        """Uploads made before then that no open session's turn names."""
        ...

    def audit(self, *, app_name: str | None = None, after: int = 0, limit: int = 100) -> list[AuditRow]: ...
    def audit_entries(self) -> list[AuditRow]:
        """The whole chain, for verification."""
        ...

    def usage(self) -> list[Json]:
        """Per app: sessions, turns and token totals, keyed as wire.admin.AppUsage."""
        ...


class SystemTx(SystemView, Protocol):
    def put_app(self, row: AppRow) -> None:
        """Add the app, or change its limits."""
        ...

    def add_token(self, row: TokenRow) -> None: ...
    def change_token(self, token_id: str, **changes: Any) -> bool: ...
    def audit_system(self, app_name: str, event: str, at: Micros, details: Json) -> None: ...


class Store(Protocol):
    """The durable backend. A write returns when it is on stable storage, or raises."""

    @property
    def commit_times(self) -> Histogram:
        """Seconds that commits took since the store was opened."""
        ...

    async def read(self, app: str, work: Callable[[View], T]) -> T: ...
    async def write(self, app: str, work: Callable[[Tx], T]) -> T: ...
    async def read_system(self, work: Callable[[SystemView], T]) -> T: ...
    async def write_system(self, work: Callable[[SystemTx], T]) -> T: ...
    def listen(self, listener: Callable[[Commit], None]) -> None:
        """Called in the event loop for every commit that added events, in order, before the writer's
        own call returns."""
        ...

    def health(self) -> str | None:
        """Why the store cannot be written now, or None."""
        ...

    def version(self) -> str: ...
    async def close(self) -> None: ...


class Sink(Protocol):
    """Where a live agent's messages go while a prompt runs, and outside of one."""

    async def emit(self, message: Json, size: int) -> None:
        """One JSON-RPC message of the agent, in order. Returns when there is room for the next."""
        ...

    async def truncated(self, dropped: int, reason: str) -> None:
        """The driver threw something away: a line that was too long, output beyond the limit."""
        ...

    async def ask(self, request: Ask) -> Verdict: ...


class LiveAgent(Protocol):
    """One agent, ready for prompts of one session. Every method is bounded in time."""

    agent_session_id: str
    how: Literal["new", "loaded", "resumed"]
    remembered: list[str] | None
    """The user's texts that a load replayed: evidence of what it still knows. None when it did not say."""

    @property
    def alive(self) -> bool: ...
    async def prompt(self, text: str, sink: Sink, *, preface: str = "") -> Answer:
        """Raises AgentError with the agent's own words; a cancel is an Answer with its stop reason.

        `preface` is what the agent must know first and is not the caller's prompt.
        """
        ...

    async def cancel(self) -> None:
        """Ask the running prompt to stop; it is the caller who ends an agent that does not listen."""
        ...

    async def set_plan_mode(self, on: bool) -> bool:
        """False where the agent has no such mode."""
        ...

    def paused(self) -> AbstractContextManager[None]:
        """The whole process tree stopped, for the moment of a copy."""
        ...

    async def close(self) -> None:
        """End the agent and everything it started; nothing of it is left when this returns."""
        ...

    def stderr_tail(self) -> str: ...


class Driver(Protocol):
    async def open(self, launch: Launch, sink: Sink) -> LiveAgent:
        """Start and shake hands. `sink` gets what is said outside of prompts, but not a load's replay."""
        ...


class Homes(Protocol):
    """The private folders of agents, and their copies at turn boundaries."""

    async def prepare(self, session_id: str, agent: AgentSpec) -> Path: ...
    async def attach(self, session_id: str, files: Sequence[FileRow]) -> list[Path]:
        """Put uploads where the session's agent can read them, under their own names."""
        ...

    async def keep(
        self, session_id: str, turn_index: int, agent_session_id: str, live: LiveAgent | None
    ) -> None:
        """Copy the home as it is after that turn. Bounded; the oldest copies go."""
        ...

    async def restore(self, session_id: str, turn_index: int) -> str | None:
        """Put the home back as it was after that turn (0: empty); the agent's session id, or None."""
        ...

    async def branch(self, source: str, target: str, turn_index: int) -> str | None:
        """Give another session the home as it was after that turn; likewise."""
        ...

    async def forget(self, session_id: str, after_turn: int) -> None:
        """Drop copies made after that turn."""
        ...

    async def remove(self, session_id: str) -> None: ...


class Workspaces(Protocol):
    """The folders that agents work in."""

    def make(self, session_id: str) -> Path:
        """A fresh one of our own."""
        ...

    def check(self, path: str) -> Path:
        """A folder that a caller named; WorkspaceRefused when it may not be used."""
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


class Catalog(Protocol):
    """The same, as callers see it."""

    def page(self) -> AgentPage:
        """Without running anything."""
        ...
