"""The hermes dialect, `/api/session…`, `/api/chat…`: unknown fields are ignored, times are float seconds."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from clawdforge.wire.base import Json, Reply, Request
from clawdforge.wire.browser import Secret
from clawdforge.wire.session import PermissionMode
from clawdforge.wire.turn import Prompt

Id = Annotated[str, StringConstraints(min_length=1, max_length=4096)]
Word = Annotated[str, StringConstraints(max_length=128)]
Text = Annotated[str, StringConstraints(max_length=4096)]
FileName = Annotated[str, StringConstraints(min_length=1, max_length=1024)]
Count = Annotated[int, Field(ge=0, le=2**53)]


class NewSession(Request):
    """Body of `POST /api/session/new`. Without `workspace` the session gets a folder of its own."""

    workspace: Text | None = None
    model: Word | None = None
    model_provider: Word | None = None
    permission_mode: PermissionMode | None = None
    profile: Word | None = None


class ImportSession(Request):
    """Body of `POST /api/session/import`. A `session_id` is ignored: the id is always fresh.

    `tool_calls` counts for messages that do not list their own.
    """

    messages: list[Json] = Field(max_length=100_000)
    tool_calls: list[Any] | None = Field(default=None, max_length=100_000)
    title: Text | None = None
    model: Word | None = None
    workspace: Text | None = None
    pinned: bool = False


class PasswordLogin(Request):
    """Body of `POST /api/auth/login`. The password is the token of an app."""

    password: Secret


class SessionRef(Request):
    """A body that names a session and nothing else."""

    session_id: Id


class Rename(SessionRef):
    """The title is cut to 80 characters; a blank one is none."""

    title: str = Field(max_length=65_536)


class Update(SessionRef):
    workspace: Text | None = None
    model: Word | None = None
    model_provider: Word | None = None


class Pin(SessionRef):
    pinned: bool = True


class Archive(SessionRef):
    archived: bool = True


class Truncate(SessionRef):
    """Keep this many messages. An answer goes with its prompt: if only the answer is to go, both do."""

    keep_count: Count


class Branch(SessionRef):
    """Without `keep_count` the branch begins at the present."""

    keep_count: Count | None = None
    title: Text | None = None


class AttachedFile(Request):
    """An uploaded file as the page keeps it in mind."""

    name: FileName


class ChatStart(SessionRef):
    """`attachments` are uploaded files: what `POST /api/upload` called them, or tokens of `POST /files`.

    With `regenerate` the last prompt runs again and no other may be sent along; else `message` is needed.
    """

    message: Prompt | None = None
    attachments: list[FileName | AttachedFile] = Field(default_factory=list, max_length=256)
    workspace: Text | None = None
    model: Word | None = None
    model_provider: Word | None = None
    regenerate: bool = False
    regeneration_revision: Word | None = None


class Steer(SessionRef):
    """Body of `POST /api/chat/steer`."""

    text: Prompt


class ApprovalRespond(SessionRef):
    """Without `approval_id` the oldest request is meant. `session` is the same as `always` here."""

    choice: Literal["once", "session", "always", "deny"] = "deny"
    approval_id: Word = ""


class HermesSession(Reply):
    """A session as the sidebar shows it; where the whole is shown, `messages` and `tool_calls` as well.

    `model_provider` is what was given with the model. It is kept for the caller; the agent is not told.
    """

    session_id: str
    id: str
    title: str
    workspace: str
    cwd: str
    model: str
    model_provider: str | None = None
    message_count: int
    created_at: float
    updated_at: float
    pinned: bool = False
    archived: bool = False
    project_id: str | None = None
    profile: str
    personality: str | None = None
    parent_session_id: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    estimated_cost: float | None = None
    state: Literal["active", "ended"]
    is_streaming: bool = False
    active_stream_id: str | None = None
    pending_user_message: str | None = None
    pending_attachments: list[str] = Field(default_factory=list)
    pending_started_at: float | None = None
    regeneration_revision: str | None = None


class HermesSessionReply(Reply):
    ok: bool = True
    session: HermesSession


class HermesList(Reply):
    """`server_time` and `server_tz` are in the list of all sessions only. Days are those of UTC here."""

    ok: bool = True
    sessions: list[HermesSession]
    count: int
    server_time: float | None = None
    server_tz: str | None = None


class HermesStatus(Reply):
    """`agent_running` is true while a turn runs or waits for a permission."""

    ok: bool = True
    session_id: str
    title: str
    model: str
    workspace: str
    message_count: int
    created_at: float
    updated_at: float
    agent_running: bool
    active_stream_id: str | None = None
    profile: str
    personality: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    estimated_cost: float | None = None


class HermesUsage(Reply):
    """What the agent reported."""

    ok: bool = True
    input_tokens: int
    output_tokens: int
    total_tokens: int
    estimated_cost: float | None = None
    model: str


class RetryReply(Reply):
    """The caller sends `last_user_text` again; nothing runs by itself."""

    ok: bool = True
    last_user_text: str
    removed_count: int


class UndoReply(Reply):
    ok: bool = True
    removed_count: int
    removed_preview: str


class BranchReply(Reply):
    ok: bool = True
    session_id: str
    title: str
    parent_session_id: str


class ChatStarted(Reply):
    """`stream_id` names the turn; its stream can be read at any time, from the start or after an id."""

    ok: bool = True
    stream_id: str
    session_id: str
    turn_index: int
    title: str
    effective_model: str
    pending_started_at: float


class UploadReply(Reply):
    """`filename` is the file's own, which no other has; `path` is the same."""

    ok: bool = True
    filename: str
    path: str
    size: int
    mime: str
    is_image: bool = False


class StreamStatus(Reply):
    ok: bool = True
    active: bool
    stream_id: str
    replay_available: bool = False
    journal: Json | None = None


class CancelledReply(Reply):
    ok: bool = True
    cancelled: bool
    stream_id: str


class PendingApproval(Reply):
    """`pending` is the oldest request that waits, null when there is none."""

    ok: bool = True
    pending: Json | None = None
    pending_count: int = 0


class ApprovalReply(Reply):
    ok: bool = True
    choice: str
    resolved: bool


class SteerReply(Reply):
    """No agent takes a prompt while it answers: the caller queues it, or stops the turn."""

    ok: bool = True
    accepted: Literal[False] = False
    fallback: Literal["no_cached_agent"] = "no_cached_agent"
    stream_id: str | None = None


class AuthStatus(Reply):
    """`auth_enabled` is false where the caller needs no login, because it is trusted as it is."""

    ok: bool = True
    auth_enabled: bool
    logged_in: bool
    password_auth_enabled: bool = True


class HermesHealth(Reply):
    """`active_streams` counts the turns that run, of all apps.

    An app is told more: in `accept_loop` how many requests there were since the start and when the last one
    came; with `deep=1` also `checks`, for which the store is read. They count the app's own open sessions.
    """

    ok: bool = True
    status: Literal["ok"] = "ok"
    active_streams: int
    uptime_seconds: float
    accept_loop: Json | None = None
    checks: dict[str, Json] | None = None
