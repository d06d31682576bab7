"""Forge route of an app's changes: sessions and permissions as they look now, as a page or a live stream."""

from collections.abc import AsyncIterator
from typing import Annotated

import orjson
from starlette.requests import Request
from starlette.responses import Response

from clawdforge.core.log import PAGE_BYTES
from clawdforge.core.models.rows import PendingPermission, PermissionRow, SessionRow
from clawdforge.core.services.all import Services
from clawdforge.core.services.changes import Change
from clawdforge.http.access.share import wants_stream
from clawdforge.http.connections.waiting import closing
from clawdforge.http.dialects.forge import shapes
from clawdforge.http.errors import encode
from clawdforge.http.replies.sse import EventStream
from clawdforge.http.requests.marks import Header, Query
from clawdforge.http.routers import Router
from clawdforge.http.routing import MAX_CURSOR, App, AppRoute, Core, Limit
from clawdforge.wire.base import Json
from clawdforge.wire.changes import ChangePage
from clawdforge.wire.session import Session
from clawdforge.wire.sse import encode as encode_frame
from clawdforge.wire.turn import AppPermission

Since = Annotated[int | None, Query(ge=0, le=MAX_CURSOR)]
LastEventId = Annotated[int | None, Header(alias="Last-Event-ID", ge=0, le=MAX_CURSOR)]


def routes() -> Router:
    router = Router(AppRoute, tags=["events"])
    stream: Json = {"content": {"text/event-stream": {}}}
    router.get("/events", response_model=ChangePage, responses={200: stream})(changes)
    return router


async def changes(
    request: Request,
    core: Core,
    app: App,
    *,
    after: Since = None,
    limit: Limit = 100,
    last_event_id: LastEventId = None,
) -> Response:
    """What changed in the app's list of sessions after a cursor: each session and permission once, as it is.

    With `Accept: text/event-stream` new changes follow as they happen. Without `after` it begins with now,
    and says where that is. A cursor older than a day may be answered by `reset`: read the list again.
    """
    cursor = after if last_event_id is None else last_event_id
    if wants_stream(request):
        return EventStream(request, _frames(core, core.changes.follow(app, cursor)))
    return Response(await _make_page(core, app, cursor, limit), media_type="application/json")


async def _make_page(core: Services, app: str, after: int | None, limit: int) -> bytes:
    """At least one change if there is one, then as many as fit."""
    events: list[bytes] = []
    following, room = after or 0, PAGE_BYTES
    async with closing(core.changes.read(app, after, limit)) as found:
        async for change in found:
            events.append(_encode(core, change))
            following, room = change.cursor, room - len(events[-1])
            if room <= 0:
                break
    return b'{"ok":true,"events":[%b],"next":%d}' % (b",".join(events), following)


async def _frames(core: Services, found: AsyncIterator[Change]) -> AsyncIterator[bytes]:
    async with closing(found):
        async for change in found:
            yield encode_frame(_encode(core, change), event=change.kind, id=str(change.cursor))


def _encode(core: Services, change: Change) -> bytes:
    """wire.changes.Change with the keys of its type."""
    fields: Json = {"cursor": change.cursor, "type": change.kind.value}
    if change.session_id is not None:
        fields["session_id"] = change.session_id
    if change.state is not None:
        fields["session"] = orjson.Fragment(encode(shapes.session(change.state, Session, core.ages)))
    if change.permission is not None:
        fields["permission"] = orjson.Fragment(encode(_shape_permission(core, *change.permission)))
    return orjson.dumps(fields)


def _shape_permission(core: Services, row: PermissionRow, session: SessionRow) -> AppPermission:
    found = PendingPermission(row, session.title, session.agent)
    return shapes.app_permission(found, core.permissions.expires_at(row))
