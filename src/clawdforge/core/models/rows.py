"""The records that services and stores pass to each other. All frozen; times in microseconds."""

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from clawdforge.core.models.events import StoredEvent
from clawdforge.wire.base import Json, Micros
from clawdforge.wire.session import Activity, OnInterrupt, PermissionMode, Retention
from clawdforge.wire.turn import IfBusy, Outcome, TurnState


@dataclass(frozen=True, slots=True)
class AppRow:
    app_name: str
    created_at: Micros
    max_sessions: int | None = None
    max_turns_in_flight: int | None = None
    max_bytes: int | None = None
    workspace_roots: tuple[str, ...] = ()  # folders in which the app may choose working directories
    max_requests_per_sec: int | None = None
    max_open_requests: int | None = None
    max_readers: int | None = None
    max_agents: int | None = None
    mcp_servers: Json = field(default_factory=dict)  # by name, as in wire.mcp.McpServer


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseRow:
    """What may not start: turns of an app, of an agent, or both; an empty name means all of them."""

    app_name: str = ""
    agent: str = ""
    reason: str | None = None
    paused_at: Micros


@dataclass(frozen=True, slots=True)
class TokenRow:
    token_id: str
    app_name: str
    hash: bytes
    created_at: Micros
    note: str | None = None
    expires_at: Micros | None = None
    revoked_at: Micros | None = None
    scopes: tuple[str, ...] = ()
    last_used_at: Micros | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRow:
    """A token that reads one session: messages up to `last_seq`, and the rest of `up_to_turn` itself."""

    share_id: str
    app_name: str
    session_id: str
    hash: bytes
    created_at: Micros
    expires_at: Micros
    up_to_turn: int
    last_seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """One row of `sessions`. Fields marked * are kept by the store itself when events are appended."""

    app_name: str
    session_id: str
    agent: str
    cwd: str
    created_at: Micros
    updated_at: Micros  # * moves with every append
    model: str | None = None
    persona: str | None = None
    instructions: str | None = None
    own_cwd: bool = False  # we made the folder, so we may remove it
    workspace_identity: str | None = None  # which folder `cwd` is; None until an old session is next used
    identities: Json = field(default_factory=dict)  # with several nodes: of a folder that a caller named,
    # by data folder, since each machine has identities of its own
    title: str = ""
    meta: Json | None = None  # None when its maker gave none
    labels: tuple[str, ...] = ()
    pinned: bool = False
    permission_mode: PermissionMode = PermissionMode.APPROVE_ALL
    on_interrupt: OnInterrupt = OnInterrupt.HOLD
    retention: Retention = Retention.TTL
    plan_mode: bool = False
    project_key: str | None = None
    parent_session_id: str | None = None
    forked_from: str | None = None
    forked_after: int | None = None  # the turn of its source up to which it has the same history
    depth: int = 0
    last_turn_at: Micros | None = None
    closed_at: Micros | None = None
    deleted_at: Micros | None = None
    activity: Activity = Activity.IDLE  # see core/rules/activity.py
    last_outcome: Outcome | None = None  # of the last turn that was not taken back
    turn_count: int = 0  # turns that were started
    last_turn: int = 0  # highest turn_index given out
    head: int = 0  # * last event's seq
    last_message: int = 0  # * highest message seq given out
    message_count: int = 0  # * messages that are neither cut nor archived
    context: int = 1
    context_plan: str = "new"  # how the agent's memory is to be had: see core/rules/memory.py
    agent_session_id: str | None = None
    files_plan: str | None = None  # a tree that the workspace is being put back to
    redo: tuple[int, ...] = ()  # the cuts that a redo can take back, newest last, by their event's seq
    mcp_servers: Json = field(default_factory=dict)  # its own, beside the app's and the operator's
    queue_order: tuple[int, ...] = ()  # queued turns that somebody has put in an order, the next first
    holder: str | None = None
    fence: int = 0
    folder: str | None = None  # with several nodes: the data folder in which its own workspace lies
    home_at: str | None = None  # with several nodes: the data folder in which its agent last ran
    written: int = 0  # events that the holder has written under this fence, as it counts them
    total_input_tokens: int = 0  # estimated
    total_output_tokens: int = 0  # estimated
    input_tokens: int = 0  # reported by the agent
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None
    estimated_cost_usd: float | None = None  # computed here, for turns whose agent told no cost


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRow:
    session_id: str
    turn_index: int
    state: TurnState
    prompt: str
    queued_at: Micros
    files: tuple[str, ...] = ()
    outcome: Outcome | None = None
    stop_reason: str | None = None
    error: str | None = None
    code: str | None = None
    error_extra: Json = field(default_factory=dict)  # e.g. the tail of the agent's stderr
    key: str | None = None
    fingerprint: str | None = None
    retry_of: int | None = None
    automatic: bool = False  # made by recovery, which tries once
    cut: bool = False
    timeout_secs: float | None = None
    if_busy: IfBusy = IfBusy.QUEUE
    context: int = 1
    started_at: Micros | None = None
    ended_at: Micros | None = None
    first_seq: int | None = None  # of turn.started
    last_seq: int | None = None  # of turn.ended
    usage: Json | None = None
    limits: Json = field(default_factory=dict)  # what it may use, by the names of wire.turn.TurnLimits
    stopped_by: str | None = None  # the limit that it crossed
    token_id: str | None = None  # whose call made it; None for the operator's
    traceparent: str | None = None  # what its caller said of the trace that it is a part of
    parent: int | None = None  # the turn that it was said after, 0 without; None: it was not noted


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRow:
    """`seq` 0 asks the store for the next one."""

    session_id: str
    role: str
    content: str
    ts: Micros
    seq: int = 0
    turn: int | None = None
    thinking: str = ""
    tool_calls: tuple[Json, ...] = ()
    plan: tuple[Any, ...] = ()
    token_count: int = 0
    is_summary: bool = False
    archived: bool = False
    cut: bool = False
    pending: bool = False
    truncated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionRow:
    permission_id: str
    session_id: str
    turn_index: int
    tool: str
    kind: str | None
    request: Json
    requested_at: Micros
    options: tuple[Any, ...] = ()
    state: Literal["pending", "decided", "expired"] = "pending"
    decision: str | None = None
    option_id: str | None = None
    reason: str | None = None
    decided_at: Micros | None = None


class TurnNode(NamedTuple):
    """A turn as the tree of a session shows it: with the beginning of its prompt."""

    turn_index: int
    parent: int | None
    cut: bool
    state: str
    outcome: str | None
    prompt: str
    queued_at: Micros


class ForkNode(NamedTuple):
    """A session that was forked after a turn of another one."""

    after_turn: int | None
    session_id: str
    title: str


class PendingPermission(NamedTuple):
    """A request that waits for an answer, and the session that it belongs to, as a list of many shows it."""

    row: PermissionRow
    title: str
    agent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow:
    file_token: str
    app_name: str
    name: str
    size: int
    path: str
    created_at: Micros
    pieces: tuple[str, ...] = ()  # with several nodes: the digests of what it consists of


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonaRow:
    app_name: str
    name: str
    agent: str
    created_at: Micros
    model: str | None = None
    permission_mode: PermissionMode | None = None
    instructions: str | None = None
    plan_mode: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    run_id: str
    app_name: str
    model: str | None
    prompt: str
    ok: bool
    stop_reason: str
    duration_ms: int
    created_at: Micros
    error: str | None = None


class AuditBase(NamedTuple):
    """The entry of the audit after which its chain goes on: those up to it were archived."""

    number: int = 0
    hash: str = "0" * 64


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """One entry of the audit log `session_events`; the store chains `hash` over what came before."""

    number: int
    app_name: str
    session_id: str | None
    event: str
    at: Micros
    details: Json
    hash: str


@dataclass(frozen=True, slots=True)
class Commit:
    """What one commit added to one session's log; told to followers once it is durable.

    A commit without events is one of another node, which may have added some to this session; without a
    session, the store was away, and there may be commits that were never announced.
    """

    app: str
    session_id: str
    events: tuple[StoredEvent, ...]
    types: frozenset[str] = field(init=False, repr=False, compare=False)
    """Of its events: there are thousands of chunks in a second, and most listeners heed none of them."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "types", frozenset([event.type for event in self.events]))


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionQuery:
    """A page of an app's sessions, last activity first. `cursor` is opaque to everybody but the store.

    With `max_bytes` it has at least one session, and then as many as fit.
    """

    include_closed: bool = True
    limit: int = 100
    max_bytes: int | None = None
    cursor: str | None = None
    agent: str | None = None
    state: Literal["active", "ended"] | None = None
    activity: Activity | None = None
    label: str | None = None
    project: str | None = None
    prefix: str | None = None
    parent: str | None = None
    pinned: bool = False  # only those
    q: str | None = None  # part of a title


@dataclass(frozen=True, slots=True)
class Hit:
    session_id: str
    title: str
    seq: int
    turn: int | None
    role: str
    ts: Micros
    snippet: str
