"""The deepagent dialect, `/api/sessions…`: unknown fields are refused, times are ISO text in seconds."""

from typing import Literal

from pydantic import Field

from clawdforge.wire.base import Json, Reply, StrictRequest
from clawdforge.wire.session import Name, Path, Title
from clawdforge.wire.turn import Prompt


class CreateSessionRequest(StrictRequest):
    """Body of `POST /api/sessions`. Without `repo_path` the session gets a folder of its own."""

    persona_name: Name = "default-interactive"
    repo_path: Path | None = None
    model_override: Name | None = None
    project_key: Name | None = None
    title: Title | None = None
    plan_mode: bool | None = None
    parent_session_id: Name | None = None


class PostMessageRequest(StrictRequest):
    """Body of `POST /api/sessions/{id}/messages`. Nothing runs unless `run` says so."""

    content: Prompt
    run: bool = False


class SessionAck(Reply):
    """`seq` is the message that was stored, `turn_index` the turn that will run."""

    ok: bool = True
    session_id: str
    id: str
    state: Literal["active", "ended"]
    seq: int | None = None
    turn_index: int | None = None


class SessionSummary(Reply):
    """A row of the list. The token totals are estimates."""

    id: str
    session_id: str
    persona_name: str
    agent: str
    model: str | None = None
    repo_path: str
    cwd: str
    workspace: str
    project_key: str | None = None
    title: str = ""
    state: Literal["active", "ended"]
    plan_mode: bool = False
    parent_session_id: str | None = None
    depth: int = 0
    message_count: int = 0
    total_input_tokens: int = 0
    total_output_tokens: int = 0
    created_at: str
    updated_at: str
    last_message_at: str | None = None
    ended_at: str | None = None


class MessageInfo(Reply):
    """One message; `data` of each frame of the stream, whose `id` is its `seq`."""

    seq: int
    role: str
    content: str
    tool_calls: list[Json] = Field(default_factory=list)
    token_count: int = 0
    is_summary: bool = False
    archived: bool = False
    pending: bool = False
    truncated: bool = False
    turn: int | None = None
    ts: str


class SessionDetail(Reply):
    """The session, its last messages, and the sub-sessions that it has."""

    ok: bool = True
    session: SessionSummary
    messages: list[MessageInfo]
    sub_sessions: list[SessionSummary] = Field(default_factory=list)
