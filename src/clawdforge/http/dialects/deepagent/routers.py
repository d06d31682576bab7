"""The deepagent dialect, `/api/sessions…`: sessions that are kept, messages stored before they run."""

from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Literal

from starlette.requests import Request
from starlette.responses import Response

from clawdforge.core.models.rows import MessageRow, SessionQuery
from clawdforge.http.connections.waiting import closing
from clawdforge.http.dialects.deepagent import shapes
from clawdforge.http.errors import json_response
from clawdforge.http.replies.sse import EventStream
from clawdforge.http.requests.marks import Header, Query
from clawdforge.http.routers import Router
from clawdforge.http.routing import MAX_CURSOR, App, AppRoute, Caller, Core, Limit
from clawdforge.wire.base import Json
from clawdforge.wire.deepagent import (
    CreateSessionRequest,
    MessageInfo,
    PostMessageRequest,
    SessionAck,
    SessionDetail,
    SessionSummary,
)
from clawdforge.wire.session import CreateSession, Retention
from clawdforge.wire.turn import TurnRequest

DETAIL_MESSAGES = 200
STREAM: Json = {"content": {"text/event-stream": {}}, "model": MessageInfo}
Key = Annotated[str | None, Header(alias="Idempotency-Key", max_length=255, pattern=r"^[\x21-\x7e]+$")]
LastSeq = Annotated[int, Query(ge=0, le=MAX_CURSOR)]
LastEventId = Annotated[int | None, Header(alias="Last-Event-ID", ge=0, le=MAX_CURSOR)]


class DeepagentRoute(AppRoute):
    """A route whose callers expect 409 from a session that has ended."""

    dialect = "deepagent"
    refuses_unknown = False  # its callers send parameters that other servers of this dialect have


def routers() -> list[Router]:
    router = Router(DeepagentRoute, tags=["deepagent dialect"])
    at = "/api/sessions/{session_id}"
    router.get("/api/sessions", response_model=list[SessionSummary])(list_sessions)
    router.post("/api/sessions", response_model=SessionAck)(create)
    router.get(at, response_model=SessionDetail)(detail)
    router.post(f"{at}/messages", response_model=SessionAck)(post_message)
    router.get(f"{at}/stream", response_class=Response, responses={200: STREAM})(stream)
    router.post(f"{at}/end", response_model=SessionAck)(end)
    return [router]


async def list_sessions(
    core: Core, app: App, limit: Limit = 50, state: Literal["active", "ended"] | None = None
) -> Response:
    """The app's sessions as a JSON array, last activity first."""
    found = await core.messages.list(app, SessionQuery(limit=limit, state=state))
    return json_response([shapes.summary(one) for one in found])


async def create(core: Core, caller: Caller, body: CreateSessionRequest) -> Response:
    """Make a session with a persona. It is kept until somebody deletes it."""
    request = CreateSession(
        persona=body.persona_name,
        model=body.model_override,
        title=body.title,
        cwd=body.repo_path,
        retention=Retention.KEEP,
        parent_session_id=body.parent_session_id,
    )
    made = await core.sessions.create(
        caller.app,
        request,
        plan_mode=body.plan_mode,
        project=body.project_key,
        may_decide=caller.may_decide,
    )
    return json_response(shapes.ack(made.row))


async def detail(
    core: Core,
    app: App,
    session_id: str,
    all: bool = False,  # noqa: A002 - the parameter's name on the wire
) -> Response:
    """A session with its last 200 messages and its sub-sessions; `all` shows archived messages as well."""
    found = await core.messages.detail(app, session_id, DETAIL_MESSAGES, archived=all)
    return json_response(shapes.detail(found))


async def post_message(
    core: Core, caller: Caller, session_id: str, body: PostMessageRequest, key: Key = None
) -> Response:
    """Store a message without running anything. With `run: true` it becomes the prompt of a turn instead."""
    app = caller.app
    if body.run:
        request = TurnRequest(prompt=body.content)
        submitted = await core.turns.submit(app, session_id, request, key, caller)
        more = {"turn_index": submitted.turn.turn_index}
    else:
        more = {"seq": (await core.messages.post(app, session_id, body.content)).seq}
    state = await core.sessions.get(app, session_id)
    return json_response(shapes.ack(state.row, **more))


async def end(core: Core, app: App, session_id: str) -> Response:
    """End a session; it can still be read. Ending it again does nothing."""
    await core.sessions.close(app, session_id)
    state = await core.sessions.get(app, session_id)
    return json_response(shapes.ack(state.row))


async def stream(
    request: Request,
    core: Core,
    app: App,
    session_id: str,
    *,
    last_seq: LastSeq = 0,
    last_event_id: LastEventId = None,
) -> Response:
    """The session's messages after `last_seq`, and then each as it comes, as server-sent events.

    `Last-Event-ID` wins over `last_seq`: a reader that reconnects repeats its old address.
    """
    cursor = last_seq if last_event_id is None else last_event_id
    await core.messages.check_cursor(app, session_id, cursor)
    return EventStream(request, _frames(core.messages.follow(app, session_id, cursor)))


async def _frames(batches: AsyncIterator[Sequence[MessageRow]]) -> AsyncIterator[bytes]:
    async with closing(batches):
        async for batch in batches:
            yield b"".join(map(shapes.frame, batch))
