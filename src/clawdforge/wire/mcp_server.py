"""Sessions as tools of an MCP server, `/mcp`: the messages, and what each tool is given."""

from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints

from clawdforge.wire.base import Json, Reply, Request, StrictRequest
from clawdforge.wire.session import Activity, Name, Title
from clawdforge.wire.turn import Decision, Prompt

MAX_WAIT_SECS: Final = 60
SessionId = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Cursor = Annotated[int, Field(ge=0, le=2**53)]


class RpcMessage(Request):
    """Body of `POST /mcp`: one request or notification of JSON-RPC."""

    jsonrpc: Any = None
    id: int | str | None = None
    method: str | None = None
    params: Any = None


class RpcReply(Reply):
    """`result` or `error`, as JSON-RPC has it."""

    jsonrpc: Literal["2.0"] = "2.0"
    id: int | str | None = None
    result: Json | None = None
    error: Json | None = None


class StartTool(StrictRequest):
    """Begin a session with an agent, and give it its first prompt. Returns at once; `wait` has the answer."""

    prompt: Prompt
    agent: Name | None = Field(default=None, description="Which agent answers; by default the server's.")
    persona: Name | None = Field(default=None, description="A persona instead of an agent.")
    model: Name | None = None
    title: Title | None = None
    parent_session_id: Name | None = Field(
        default=None, description="The session that this one is a part of. It ends with it."
    )


class SendTool(StrictRequest):
    """Send a prompt to a session; it waits while the agent is busy. Returns at once; then use `wait`."""

    session_id: SessionId
    prompt: Prompt


class WaitTool(StrictRequest):
    """Wait for the answer to a prompt, for a bounded time.

    Returns what was said after `after`, and a `cursor` to go on from: call it again with that as `after`
    until `state` is `ended`. With `waiting`, the agent has asked for a permission that somebody must decide.
    """

    session_id: SessionId
    turn: Annotated[int, Field(ge=1, le=2**53)] | None = Field(
        default=None, description="Which turn; the last one if left out."
    )
    after: Cursor | None = Field(default=None, description="The cursor that another tool returned.")
    seconds: float = Field(default=30, ge=0, le=MAX_WAIT_SECS)


class ReadTool(StrictRequest):
    """Read a session's messages, oldest first. `next` is the `after` of the following page."""

    session_id: SessionId
    after: Cursor = 0
    limit: int = Field(default=20, ge=1, le=200)


class ListTool(StrictRequest):
    """List sessions, last activity first. `next` is the `cursor` of the following page."""

    activity: Activity | None = None
    cursor: str | None = Field(default=None, max_length=500)
    limit: int = Field(default=20, ge=1, le=200)


class SearchTool(StrictRequest):
    """Find messages by their words, newest first; found words stand between « and »."""

    q: str = Field(min_length=1, max_length=1000)
    cursor: str | None = Field(default=None, max_length=500)
    limit: int = Field(default=20, ge=1, le=200)


class CancelTool(StrictRequest):
    """Stop a session's running turn, or the one that is named. What was said is kept."""

    session_id: SessionId
    turn: Annotated[int, Field(ge=1, le=2**53)] | None = None


class DecideTool(StrictRequest):
    """Decide what an agent asks for. The first answer counts."""

    session_id: SessionId
    permission_id: Name
    decision: Decision
