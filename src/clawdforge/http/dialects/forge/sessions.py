"""Forge routes about sessions as such: make, list, read, change, close, reopen, and their transcript."""

from functools import partial
from typing import Annotated, Final, Literal

from starlette.requests import Request
from starlette.responses import Response

from clawdforge.core.models.rows import SessionQuery
from clawdforge.core.rules.paging import Place
from clawdforge.http.access.auth import require_scope
from clawdforge.http.dialects.forge import shapes
from clawdforge.http.errors import json_response
from clawdforge.http.replies.piecewise import shape
from clawdforge.http.requests.marks import Query
from clawdforge.http.routers import Router
from clawdforge.http.routing import MAX_CURSOR, App, AppRoute, Caller, Core, Limit
from clawdforge.wire.errors import InvalidRequest
from clawdforge.wire.message import MessagePage
from clawdforge.wire.scopes import Scope
from clawdforge.wire.session import (
    Activity,
    AgentReply,
    CloseReply,
    CreateSession,
    PatchSession,
    Session,
    SessionPage,
    SessionReply,
)

Seq = Annotated[int | None, Query(ge=0, le=MAX_CURSOR)]
Words = Annotated[str | None, Query(max_length=500)]
LIST_BYTES: Final = 3 * 512 * 1024
"""Room for 500 sessions with little `meta`. What each costs besides is more than its bytes."""


def routes() -> Router:
    router = Router(AppRoute, tags=["sessions"])
    router.post("/sessions", response_model=SessionReply)(create)
    router.get("/sessions", response_model=SessionPage)(list_sessions)
    router.get("/sessions/{session_id}", response_model=SessionReply)(get)
    router.patch("/sessions/{session_id}", response_model=SessionReply)(patch)
    router.delete("/sessions/{session_id}", response_model=CloseReply)(close)
    router.delete("/sessions/{session_id}/agent", response_model=AgentReply)(let_go)
    router.post("/sessions/{session_id}/reopen", response_model=SessionReply)(reopen)
    router.get("/sessions/{session_id}/messages", response_model=MessagePage)(messages)
    return router


async def create(core: Core, caller: Caller, body: CreateSession) -> Response:
    """Make a session; an empty body makes one of the default agent."""
    if caller.session_id is None:
        state = await core.sessions.create(caller.app, body, may_decide=caller.may_decide)
    else:
        state = await core.sub_sessions.create(caller, body)
    return json_response(shapes.session(state, SessionReply, core.ages))


async def list_sessions(
    core: Core,
    app: App,
    *,
    include_closed: bool = True,
    limit: Limit = 100,
    cursor: Words = None,
    agent: Words = None,
    state: Literal["active", "ended"] | None = None,
    activity: Activity | None = None,
    label: Words = None,
    project: Words = None,
    prefix: Words = None,
    q: Words = None,
) -> Response:
    """The app's sessions, last activity first."""
    query = SessionQuery(
        include_closed=include_closed,
        limit=limit,
        max_bytes=LIST_BYTES,
        cursor=cursor,
        agent=agent,
        state=state,
        activity=activity,
        label=label,
        project=project,
        prefix=prefix,
        q=q,
    )
    found, following = await core.sessions.list(app, query)
    pause = partial(core.loop_turns.slice, app)
    rows = await shape(pause, found, lambda state: shapes.session(state, Session, core.ages))
    return json_response(SessionPage(sessions=rows, count=len(rows), next=following))


async def get(core: Core, app: App, session_id: str) -> Response:
    """A session's row and state."""
    state = await core.sessions.get(app, session_id)
    return json_response(shapes.session(state, SessionReply, core.ages))


async def patch(request: Request, core: Core, app: App, session_id: str, body: PatchSession) -> Response:
    """Change what is given. A new agent is told the transcript; with a new model it keeps its memory."""
    if body.permission_mode is not None:
        require_scope(request, Scope.DECIDE)  # it decides what will be asked at all
    state = await core.sessions.patch(app, session_id, body)
    return json_response(shapes.session(state, SessionReply, core.ages))


async def close(core: Core, app: App, session_id: str) -> Response:
    """End a session; its history stays. Closing it again does nothing."""
    already = await core.sessions.close(app, session_id)
    return json_response(CloseReply(session_id=session_id, already_closed=already))


async def let_go(core: Core, app: App, session_id: str) -> Response:
    """End the session's agent as soon as no turn runs. The next prompt starts it again."""
    await core.sessions.let_go(app, session_id)
    return json_response(AgentReply(session_id=session_id))


async def reopen(core: Core, app: App, session_id: str) -> Response:
    """Open a closed session again."""
    state = await core.sessions.reopen(app, session_id)
    return json_response(shapes.session(state, SessionReply, core.ages))


async def messages(
    core: Core,
    app: App,
    session_id: str,
    *,
    after: Seq = None,
    before: Seq = None,
    around: Seq = None,
    tail: bool = False,
    limit: Limit = 200,
    all: bool = False,  # noqa: A002 - the parameter's name on the wire
) -> Response:
    """The transcript, oldest first; `tail` is its end, `around` a seq with what stands near it.

    `all` shows archived messages as well.
    """
    span = await core.messages.page(
        app, session_id, find_place(after, before, around, tail=tail), limit, archived=all
    )
    page = await shape(partial(core.loop_turns.slice, app), span.rows, shapes.message)
    return json_response(
        MessagePage(
            session_id=session_id, messages=page, count=len(page), next=span.next, previous=span.previous
        )
    )


def find_place(after: int | None, before: int | None, around: int | None, *, tail: bool) -> Place:
    """Where the page lies that was asked for; without a word about it, at the beginning."""
    given = [Place("after", after)] if after is not None else []
    given += [Place("before", before)] if before is not None else []
    given += [Place("around", around)] if around is not None else []
    given += [Place("before", None)] if tail else []
    if len(given) > 1:
        raise InvalidRequest("a page lies at one place: give only one of after, before, around and tail")
    return given[0] if given else Place()
