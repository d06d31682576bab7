"""A session: a durable conversation with one agent in one workspace. Requests and replies about it."""

from enum import StrEnum
from typing import Annotated, Any, Final, Literal, TypeAlias

import orjson
from pydantic import AfterValidator, ConfigDict, Field, StringConstraints

from clawdforge.wire.base import Json, Record, Reply, Request
from clawdforge.wire.json_bounds import is_larger
from clawdforge.wire.mcp import McpServers
from clawdforge.wire.message import Message
from clawdforge.wire.pauses import Pause
from clawdforge.wire.turn import Outcome, TurnLimits, Usage

MAX_TITLE: Final = 500
MAX_META_BYTES: Final = 64 * 1024


def _check_meta(value: Json) -> Json:
    """It is part of every list that the session is in, so it cannot be of any size."""
    if is_larger(value, MAX_META_BYTES):  # looks no further than it must
        raise ValueError(f"it takes far more than {MAX_META_BYTES} bytes as JSON; keep it elsewhere")
    size = len(orjson.dumps(value))
    if size > MAX_META_BYTES:
        raise ValueError(f"it takes {size} bytes as JSON; keep what is more than {MAX_META_BYTES} elsewhere")
    return value


Name = Annotated[str, StringConstraints(min_length=1, max_length=128)]
Title = Annotated[str, StringConstraints(max_length=MAX_TITLE)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=64)]
Meta = Annotated[Json, AfterValidator(_check_meta)]
Path = Annotated[str, StringConstraints(min_length=1, max_length=4096)]


class PermissionMode(StrEnum):
    """How an agent's requests are decided when nobody is asked."""

    APPROVE_ALL = "approve_all"
    APPROVE_READS = "approve_reads"
    ASK = "ask"
    DENY_ALL = "deny_all"


PermissionModeWord: TypeAlias = PermissionMode | Literal["approve_all", "approve_reads", "ask", "deny_all"]


class OnInterrupt(StrEnum):
    """What happens after a crash has cut off a turn, which ends as interrupted."""

    HOLD = "hold"
    CONTINUE = "continue"
    RETRY = "retry"


OnInterruptWord: TypeAlias = OnInterrupt | Literal["hold", "continue", "retry"]


class Retention(StrEnum):
    """`ttl` sessions are closed when idle and later deleted; `keep` sessions stay."""

    TTL = "ttl"
    KEEP = "keep"


RetentionWord: TypeAlias = Retention | Literal["ttl", "keep"]


class Activity(StrEnum):
    """What an open session is doing; at rest, how its last turn ended."""

    IDLE = "idle"
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


ActivityWord: TypeAlias = Activity | Literal["idle", "queued", "running", "waiting", "interrupted", "failed"]
SessionStateWord: TypeAlias = Literal["active", "ended"]
ImportFormat: TypeAlias = Literal["messages", "clawdforge", "claude", "codex"]


class CreateSession(Request):
    """Body of `POST /sessions`; an empty body makes a session of the default agent."""

    agent: Name | None = None
    persona: Name | None = None
    model: Name | None = None
    meta: Meta | None = None
    title: Title | None = None
    cwd: Path | None = None
    permission_mode: PermissionMode | None = None
    on_interrupt: OnInterrupt = OnInterrupt.HOLD
    retention: Retention = Retention.TTL
    labels: list[Label] = Field(default_factory=list, max_length=64)
    parent_session_id: Name | None = None
    mcp_servers: McpServers | None = None


class PatchSession(Request):
    """Body of `PATCH /sessions/{id}`: what is given is changed.

    A new agent is a new context that is told the transcript. With a new model the agent keeps its memory;
    with `fresh_context` too, that is a new context instead.
    """

    title: Title | None = None
    meta: Meta | None = None
    pinned: bool | None = None
    labels: list[Label] | None = Field(default=None, max_length=64)
    agent: Name | None = None
    model: Name | None = None
    permission_mode: PermissionMode | None = None
    on_interrupt: OnInterrupt | None = None
    retention: Retention | None = None
    plan_mode: bool | None = None
    fresh_context: bool = False
    expected_head: int | None = Field(default=None, ge=0)


KNOWN_FIRST: Final = Field(union_mode="left_to_right")
"""A word that is known here becomes a member of its enum; one of a newer server stays text. Otherwise one
session with a new word would make a whole list unreadable."""


class Session(Record):
    """A session's row and state. Times are whole seconds; `live` means open; `head` is the last event.

    `updated_us` is `updated_at` in microseconds: the order of lists, newest first.

    With `paused`, what is queued waits until the operator resumes it. `closes_at` and `deletes_at` say when a
    `ttl` session will be closed and deleted if nothing happens before; both are null for a `keep` session and
    while a turn runs or waits.

    `activity` is `waiting` while the agent has asked for something: `pending_permissions` are not decided.
    `mcp_servers` are the names of its own ones.

    At rest it tells of `last_outcome`: how the last turn ended that was not taken back, null before the first
    and after a clear. `can_redo` means that an undo can still be taken back.

    This server sends all of it. The defaults are for the replies of an older one, which has fewer fields.
    """

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    session_id: str
    id: str = ""
    app_name: str = ""
    agent: str = ""
    model: str | None = None
    persona: str | None = None
    cwd: str = ""
    workspace: str = ""
    title: str = ""
    meta: Json | None = None
    labels: list[str] = Field(default_factory=list)
    pinned: bool = False
    permission_mode: Annotated[PermissionMode | str, KNOWN_FIRST] = PermissionMode.APPROVE_ALL
    on_interrupt: Annotated[OnInterrupt | str, KNOWN_FIRST] = OnInterrupt.HOLD
    retention: Annotated[Retention | str, KNOWN_FIRST] = Retention.TTL
    plan_mode: bool = False
    project_key: str | None = None
    parent_session_id: str | None = None
    forked_from: str | None = None
    depth: int = 0
    mcp_servers: list[str] = Field(default_factory=list)
    state: SessionStateWord | str = "active"
    live: bool = True
    created_at: int = 0
    updated_at: int = 0
    updated_us: int = 0
    last_turn_at: int | None = None
    closed_at: int | None = None
    closes_at: int | None = None
    deletes_at: int | None = None
    turn_count: int = 0
    running_turn: int | None = None
    queued_turns: int = 0
    activity: Annotated[Activity | str, KNOWN_FIRST] = Activity.IDLE
    pending_permissions: int = 0
    last_outcome: Annotated[Outcome | str | None, KNOWN_FIRST] = None
    paused: Pause | None = None
    message_count: int = 0
    context: int = 1
    head: int = 0
    can_redo: bool = False


class SessionReply(Session):
    ok: bool = True


class SessionPage(Reply):
    """`count` is the length of `sessions`; `next` the cursor of the following page, null on the last."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    ok: bool = True
    sessions: list[Session] = Field(default_factory=list)
    count: int = 0
    next: str | None = None


class CloseReply(Reply):
    ok: bool = True
    session_id: str
    already_closed: bool = False


class AgentReply(Reply):
    """The session's agent ends as soon as no turn runs."""

    ok: bool = True
    session_id: str


class Guarded(Request):
    """An operation on history. With `expected_head` it is refused when the session has moved on."""

    expected_head: int | None = Field(default=None, ge=0)


class UndoRequest(Guarded):
    """`turns` counts back from the last one; `files` takes the workspace back as well."""

    turns: int = Field(default=1, ge=1, le=10_000)
    files: bool = False


class RedoRequest(Guarded):
    files: bool = False


class RetryRequest(Guarded):
    """Cut the last exchange; with `run` it runs again at once, with `prompt` another prompt runs instead."""

    run: bool = False
    prompt: str | None = Field(default=None, min_length=1, max_length=16 * 1024 * 1024)
    files: bool = False


class ForkRequest(Guarded):
    """`after_turn` forks an earlier point; without it, the present."""

    title: Title | None = None
    after_turn: int | None = Field(default=None, ge=0)


class CompactRequest(Guarded):
    """`prompt` replaces our own request for the summary."""

    prompt: str | None = Field(default=None, min_length=1, max_length=262_144)


class CutReply(Reply):
    """What undo and retry answer."""

    ok: bool = True
    session_id: str
    removed_count: int
    removed_turns: list[int]
    removed_preview: str
    last_user_text: str
    head: int
    context: int
    turn_index: int | None = None


class RestoreReply(Reply):
    ok: bool = True
    session_id: str
    restored_count: int
    restored_turns: list[int]
    head: int
    context: int


class HistoryReply(Reply):
    """What clear and compact answer."""

    ok: bool = True
    session_id: str
    archived_count: int
    head: int
    context: int
    summary: str | None = None


class UsageReply(Reply):
    """`reported` by the agent, `estimated` by counting text; never added to each other."""

    ok: bool = True
    session_id: str
    input_tokens: int
    output_tokens: int
    total_tokens: int
    cached_tokens: int = 0
    cost_usd: float | None = None
    reported: Usage
    estimated: Usage
    turns: int


class ImportRequest(Request):
    """A transcript from elsewhere, or one of our own exports (`format` then says so)."""

    format: ImportFormat = "messages"
    title: Title | None = None
    messages: list[Json] | None = Field(default=None, max_length=100_000)
    export: Json | None = None
    text: str | None = None
    agent: Name | None = None
    model: Name | None = None
    cwd: Path | None = None
    meta: Meta | None = None
    retention: Retention = Retention.KEEP


class ExportedTurn(Reply):
    """A turn in an export. Times are ISO text; import takes seconds as well."""

    turn_index: int
    prompt: str
    outcome: Outcome
    stop_reason: str | None = None
    error: str | None = None
    code: str | None = None
    retry_of: int | None = None
    queued_at: str | float | None = None
    started_at: str | float | None = None
    ended_at: str | float | None = None
    usage: Usage | None = None
    limits: TurnLimits | None = None
    stopped_by: str | None = None


class Export(Reply):
    """A session on its own, readable anywhere; `POST /sessions/import` reads it back equal."""

    format: Literal["clawdforge"] = "clawdforge"
    version: int = 1
    session: Json
    messages: list[Message]
    turns: list[ExportedTurn]
    events: list[Any] | None = None


class PurgeReply(Reply):
    ok: bool = True
    session_id: str
    purged: bool = True
