"""hermes streams that a page keeps open: that the list of sessions changed, and that a session did."""

from collections.abc import AsyncIterator
from typing import Final

import orjson
from starlette.requests import Request
from starlette.responses import Response

from clawdforge.core.services.all import Services
from clawdforge.core.services.changes import ChangeKind
from clawdforge.core.services.messages import NEWS
from clawdforge.http.access.share import wants_stream
from clawdforge.http.connections.waiting import closing
from clawdforge.http.dialects.hermes import shapes
from clawdforge.http.dialects.hermes.route import Page, SessionId, router
from clawdforge.http.replies.sse import EventStream
from clawdforge.http.routers import Router
from clawdforge.http.routing import App, Core
from clawdforge.wire.base import Json
from clawdforge.wire.errors import InvalidRequest
from clawdforge.wire.sse import encode

STREAM: Final[Json] = {"content": {"text/event-stream": {}}}


def routes(prefix: str) -> Router:
    found = router(prefix)
    found.get("/api/session/stream", response_class=Response, responses={200: STREAM})(session_stream)
    found.get("/api/sessions/events", response_class=Response, responses={200: STREAM})(list_events)
    return found


async def list_events(request: Request, core: Core, app: App) -> Response:
    """`sessions_changed` whenever a session of the app was made, changed or deleted, as it happens."""
    if not wants_stream(request):
        raise InvalidRequest("this route streams only; ask with Accept: text/event-stream")
    return EventStream(request, _list_frames(core, app))


async def session_stream(
    request: Request, core: Core, app: App, page: Page, session_id: SessionId
) -> Response:
    """`initial`, and `session-updated` with the number of messages whenever there are new ones."""
    head = (await core.sessions.get(app, session_id)).row.head
    return EventStream(request, _session_frames(core, app, session_id, head, page))


async def _list_frames(core: Services, app: str) -> AsyncIterator[bytes]:
    changes = core.changes.follow(app, None)
    async with closing(changes):
        async for change in changes:
            if change.kind is ChangeKind.CURSOR:
                continue  # only where it begins
            row = change.state.row if change.state else change.permission[1] if change.permission else None
            session_id = row.session_id if row else change.session_id
            named = shapes.profile(row) if row else shapes.PROFILE
            yield _frame("sessions_changed", {"session_id": session_id, "profile": named})


async def _session_frames(
    core: Services, app: str, session_id: str, head: int, page: bool
) -> AsyncIterator[bytes]:
    yield _frame("initial", {"session_id": session_id})
    batches = core.log.follow(app, session_id, head)
    async with closing(batches):
        async for batch in batches:
            if any(event.type in NEWS for event in batch):
                found = await core.messages.transcript(app, session_id, 0, with_cut_off=page)
                count = found.count
                yield _frame("session-updated", {"session_id": session_id, "message_count": count})


def _frame(name: str, data: Json) -> bytes:
    return encode(orjson.dumps(data), event=name)
