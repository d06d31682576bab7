"""Forge route of the event log: a page as JSON, or the log as a live stream."""

from typing import Annotated

from starlette.requests import Request
from starlette.responses import Response

from clawdforge.http.access.share import wants_stream
from clawdforge.http.dialects.forge import shapes
from clawdforge.http.replies.sse import EventStream, session_frames
from clawdforge.http.requests.marks import Header
from clawdforge.http.routers import Router
from clawdforge.http.routing import MAX_CURSOR, After, App, AppRoute, Core, Limit
from clawdforge.wire.base import Json
from clawdforge.wire.event import EventPage
from clawdforge.wire.event_forms import Form

LastEventId = Annotated[int | None, Header(alias="Last-Event-ID", ge=0, le=MAX_CURSOR)]


def routes() -> Router:
    router = Router(AppRoute, tags=["events"])
    stream: Json = {"content": {"text/event-stream": {}}}
    router.get("/sessions/{session_id}/events", response_model=EventPage, responses={200: stream})(events)
    return router


async def events(
    request: Request,
    core: Core,
    app: App,
    session_id: str,
    *,
    after: After = 0,
    limit: Limit = 100,
    form: Form = Form.NESTED,
    last_event_id: LastEventId = None,
) -> Response:
    """The session's events after a cursor; with `Accept: text/event-stream`, new ones follow as they happen.

    `Last-Event-ID` wins over `after`: a reader that reconnects repeats its old address. `form` is that of the
    agent's events.
    """
    cursor = after if last_event_id is None else last_event_id
    if wants_stream(request):
        await core.log.page(app, session_id, cursor, 1)  # what is unknown is told before the stream
        stretches = core.log.follow_stretches(app, session_id, cursor, form)
        return EventStream(request, session_frames(stretches, form))
    page = await core.log.page(app, session_id, cursor, limit, form)
    return Response(shapes.events_page(page, cursor, form), media_type="application/json")
