"""What operators see and do: agents, personas, files, runs, apps, tokens, audit, health."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from clawdforge.wire.base import Json, Reply, Request, StrictRequest
from clawdforge.wire.budgets import Budget
from clawdforge.wire.mcp import MAX_SECRETS, McpServers, SecretName
from clawdforge.wire.pauses import Pause
from clawdforge.wire.scopes import Scope
from clawdforge.wire.session import Name, PermissionMode

ELSEWHERE = "elsewhere"


class AgentInfo(Reply):
    """A configured agent and whether its program is there. One of the variables in `keys` signs it in.

    With `driver` "elsewhere", only another server of the same database has it.
    """

    name: str
    title: str = ""
    driver: str
    installed: bool
    version: str | None = None
    install: str | None = None
    keys: list[str] = Field(default_factory=list)
    sandbox: str | None = None
    paused: Pause | None = None


class AgentPage(Reply):
    ok: bool = True
    agents: list[AgentInfo]
    default: str


class PutPersona(Request):
    agent: Name
    model: Name | None = None
    permission_mode: PermissionMode | None = None
    instructions: str | None = Field(default=None, max_length=262_144)
    plan_mode: bool = False


class Persona(Reply):
    name: str
    agent: str
    model: str | None = None
    permission_mode: PermissionMode | None = None
    instructions: str | None = None
    plan_mode: bool = False
    builtin: bool = False


class PersonaReply(Reply):
    ok: bool = True
    persona: Persona


class PersonaPage(Reply):
    ok: bool = True
    personas: list[Persona]
    count: int


class FileReply(Reply):
    """`file_token` names the file in a turn's `files`."""

    ok: bool = True
    file_token: str
    name: str
    size: int


class RunRequest(Request):
    """Body of `POST /run`: one prompt, one answer, no session."""

    prompt: str = Field(min_length=1, max_length=16 * 1024 * 1024)
    model: Name | None = None
    files: list[str] | None = Field(default=None, max_length=256)
    timeout_secs: float | None = Field(default=None, gt=0, le=86_400, allow_inf_nan=False)


class RunReply(Reply):
    """Exactly these four keys."""

    ok: bool
    result: Any
    duration_ms: int
    stop_reason: str


class Done(Reply):
    ok: bool = True


class Limits(StrictRequest):
    """What one app may use; null means the server's own setting."""

    max_sessions: int | None = Field(default=None, ge=0, le=2**53)
    max_turns_in_flight: int | None = Field(default=None, ge=0, le=2**53)
    max_bytes: int | None = Field(default=None, ge=0, le=2**53)
    max_requests_per_sec: int | None = Field(default=None, ge=0, le=2**31)
    max_open_requests: int | None = Field(default=None, ge=0, le=2**31)
    max_readers: int | None = Field(default=None, ge=0, le=2**31)
    max_agents: int | None = Field(default=None, ge=0, le=2**31)


class LimitsReply(Reply):
    """`GET /limits`: what the caller's app may have, null where there is no limit, and what it has now.

    `requests_left` is how many it may send at once. Of several `servers` each counts for itself what it has
    of requests, open requests, readers and agents; all else is counted once for all of them. `sources` says
    of each limit whether it is the app's `own`, set by the operator, or the `default` of the settings; the
    default of `max_sessions` counts `ttl_sessions` only. `paused` are the
    operator's pauses that concern the app: of everybody, of agents, and its own. `budgets` are those of
    `GET /budgets`. A `ttl` session is closed when nothing has happened for `closes_after_secs`, and deleted
    `deletes_after_secs` later.
    """

    ok: bool = True
    app_name: str
    max_sessions: int | None = None
    max_turns_in_flight: int | None = None
    max_bytes: int | None = None
    max_requests_per_sec: int | None = None
    max_open_requests: int | None = None
    max_readers: int | None = None
    max_agents: int | None = None
    sources: dict[str, str] = Field(default_factory=dict)
    sessions: int
    ttl_sessions: int = 0
    turns_in_flight: int
    bytes_stored: int
    bytes_by_form: dict[str, int] = Field(default_factory=dict)
    open_requests: int
    readers: int
    agents: int = 0
    requests_left: int | None = None
    servers: int = 1
    paused: list[Pause] = Field(default_factory=list)
    budgets: list[Budget] = Field(default_factory=list)
    closes_after_secs: int | None = None
    deletes_after_secs: int | None = None


class PutApp(StrictRequest):
    """What is left out stays as it is. `limits` are replaced as a whole, and so are `workspace_roots`.

    These are the folders in which the app may choose working directories, as absolute paths.
    `mcp_servers`, which its agents are given beside the operator's, are replaced as a whole too. `secrets`
    are kept by name, each in place of the one before; an empty text removes it. No reply shows them.
    """

    app_name: Name
    limits: Limits | None = None
    workspace_roots: list[Annotated[str, Field(min_length=1, max_length=4096)]] | None = Field(
        default=None, max_length=256
    )
    mcp_servers: McpServers | None = None
    secrets: dict[SecretName, Annotated[str, Field(max_length=8192)]] | None = Field(
        default=None, max_length=MAX_SECRETS, repr=False
    )


class AppUsed(Reply):
    """What an app has of what there are limits for: open sessions, and those of them that are `ttl`."""

    sessions: int = 0
    ttl_sessions: int = 0
    turns_in_flight: int = 0
    bytes_stored: int = 0
    open_requests: int = 0
    readers: int = 0
    agents: int = 0


class AppInfo(Reply):
    """`limits` are the app's own. `allowed` is what holds, with the settings where it has none; `sources`
    says of each whether it is its `own` or the `default`. `used` is what it has now.
    """

    app_name: str
    created_at: int
    limits: Json
    allowed: dict[str, int | None] = Field(default_factory=dict)
    sources: dict[str, str] = Field(default_factory=dict)
    used: AppUsed = Field(default_factory=AppUsed)
    workspace_roots: list[str] = Field(default_factory=list)
    mcp_servers: list[str] = Field(default_factory=list)
    secrets: list[str] = Field(default_factory=list)
    sessions: int = 0
    tokens: int = 0
    bytes_stored: int = 0
    paused: Pause | None = None


class AppReply(Reply):
    ok: bool = True
    app: AppInfo


class AppPage(Reply):
    ok: bool = True
    apps: list[AppInfo]
    count: int


class CreateOwnToken(StrictRequest):
    """Body of `POST /tokens`. Without `scopes` the new token has those of the token that makes it."""

    scopes: tuple[Scope, ...] | None = Field(default=None, min_length=1, max_length=len(Scope))
    expires_in_secs: int | None = Field(default=None, gt=0, le=100 * 365 * 86_400)
    note: str | None = Field(default=None, max_length=200)


class CreateToken(CreateOwnToken):
    """Body of `POST /admin/tokens`. Without `scopes` the new token has all."""

    app_name: Name


class TokenReply(Reply):
    """The only time the token itself is shown."""

    ok: bool = True
    app_name: str
    token: str
    token_id: str
    expires_at: int | None = None
    scopes: list[str] = Field(default_factory=list)


class TokenInfo(Reply):
    """`last_used_at` is right to a minute; null until the token was used."""

    token_id: str
    app_name: str
    note: str | None = None
    created_at: int
    expires_at: int | None = None
    revoked_at: int | None = None
    scopes: list[str] = Field(default_factory=list)
    last_used_at: int | None = None


class TokenPage(Reply):
    ok: bool = True
    tokens: list[TokenInfo]
    count: int


class SweepReply(Reply):
    ok: bool = True
    soft_closed: int
    hard_deleted: int


class AuditEntry(Reply):
    """One entry of the audit log; `hash` covers the entry and the hash before it."""

    number: int
    app_name: str
    session_id: str | None
    event: str
    at: str
    details: Json
    hash: str


class AuditPage(Reply):
    ok: bool = True
    entries: list[AuditEntry]
    count: int
    next: int | None = None


class AuditVerdict(Reply):
    """`first_bad` names the first entry that does not fit, null when all do."""

    ok: bool = True
    valid: bool
    entries: int
    head: str
    first_bad: int | None = None
    reason: str | None = None


class AppUsage(Reply):
    app_name: str
    sessions: int
    turns: int
    input_tokens: int
    output_tokens: int
    estimated_input_tokens: int
    estimated_output_tokens: int
    cost_usd: float | None = None


class AdminUsage(Reply):
    ok: bool = True
    apps: list[AppUsage]
    count: int


class WaitsFor(StrEnum):
    """What the work of a session can wait for."""

    PLACE = "place"
    STORE = "store"
    HOME = "home"
    START = "start"
    AGENT = "agent"
    PERMISSION = "permission"
    COPY = "copy"
    HISTORY = "history"


class StuckSession(Reply):
    """A session whose work has waited for the same thing for `secs`: see `waits_for` in the guide."""

    app_name: str
    session_id: str
    turn: int | None = None
    waits_for: WaitsFor
    secs: float


class StuckReply(Reply):
    """`tasks` are those beside requests that have failed and wait to be started again, with the reason."""

    ok: bool = True
    sessions: list[StuckSession]
    count: int
    tasks: dict[str, str]


class Health(Reply):
    """`GET /healthz`, no token needed: nothing here belongs to an app.

    `sandbox` is how agents are contained, `bwrap`, `bwrap-full`, `landlock` or `tree`, which hides nothing
    from them, and `sandbox_reason` why; `sandbox_walls` names what that consists of here, each tried when
    the server started. `agent_max_…` is what each agent is held to, null where the machine cannot do it;
    `agent_limits` says by what, or why not. `paused` is true while the operator lets no turn start.
    """

    ok: bool = True
    version: str
    acpx_present: bool
    acpx_version: str | None = None
    open_sessions: int
    live_agents: int
    sandbox: str
    sandbox_reason: str | None = None
    sandbox_walls: tuple[str, ...] = ()
    agent_max_processes: int | None = None
    agent_max_memory_bytes: int | None = None
    agent_limits: str | None = None
    trust_loopback: bool
    paused: bool = False
    sqlite_version: str | None = None


class Ready(Reply):
    ok: bool
    store: str
    reason: str | None = None
