"""Forge routes about share links: made, listed and revoked by the app; read by whoever has one."""

from functools import partial
from typing import Annotated

from starlette.requests import Request
from starlette.responses import Response

from clawdforge.core.models.principal import Principal
from clawdforge.core.models.rows import LinkRow
from clawdforge.core.services.all import Services
from clawdforge.core.services.links import Shared
from clawdforge.http.dialects.forge import shapes
from clawdforge.http.dialects.forge.sessions import Seq, find_place
from clawdforge.http.errors import json_response
from clawdforge.http.replies.piecewise import shape
from clawdforge.http.requests.marks import Depends
from clawdforge.http.routers import Router
from clawdforge.http.routing import App, AppRoute, Core, Credential, Limit, OpenRoute
from clawdforge.wire.admin import Done
from clawdforge.wire.base import Json, to_seconds
from clawdforge.wire.errors import ShareNotFound
from clawdforge.wire.shares import CreateShare, Share, SharedMessages, SharedSession, SharePage, ShareReply


async def require_share(request: Request) -> Principal:
    """Only the token of a link counts here, and it counts nowhere else.

    Its readers are no app: they have a share of the server of their own, and no name by which a row is found.
    """
    services: Services = request.app.state.services
    credentials = request.headers.getlist("authorization")
    scheme, _, token = (credentials[0] if len(credentials) == 1 else "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise ShareNotFound
    shared = await services.links.find(token.strip())
    request.state.shared = shared
    return Principal(app=f"readers of {shared.link.app_name}")


class SharedRoute(OpenRoute):
    """A route that needs the token of a share link."""

    credential = Credential(require_share)
    refuses_unknown = True


def _shared(request: Request) -> Shared:
    shared: Shared = request.state.shared
    return shared


Found = Annotated[Shared, Depends(_shared)]


def routes() -> Router:
    router = Router(AppRoute, tags=["shares"])
    at = "/sessions/{session_id}/shares"
    router.post(at, response_model=ShareReply)(create)
    router.get(at, response_model=SharePage)(list_shares)
    router.delete(f"{at}/{{share_id}}", response_model=Done)(revoke)
    return router


def shared_routes() -> Router:
    router = Router(SharedRoute, tags=["shares"])
    router.get("/shared", response_model=SharedSession)(show)
    router.get("/shared/messages", response_model=SharedMessages)(read)
    return router


async def create(core: Core, app: App, session_id: str, body: CreateShare) -> Response:
    """Make a link that shows this session to whoever has it, up to a turn; its token is shown only once."""
    token, row = await core.links.create(app, session_id, body)
    return json_response(ShareReply(**_fields(row), token=token, path=f"ui/shared#{token}"))


async def list_shares(core: Core, app: App, session_id: str) -> Response:
    """The session's share links that are good, without their tokens."""
    rows = [Share(**_fields(row)) for row in await core.links.list(app, session_id)]
    return json_response(SharePage(session_id=session_id, shares=rows, count=len(rows)))


async def revoke(core: Core, app: App, session_id: str, share_id: str) -> Response:
    """Revoke a share link at once."""
    await core.links.revoke(app, session_id, share_id)
    return json_response(Done())


async def show(shared: Found) -> Response:
    """With the token of a share link: what it shows."""
    return json_response(
        SharedSession(
            title=shared.title,
            agent=shared.session.agent,
            created_at=to_seconds(shared.session.created_at) or 0,
            expires_at=to_seconds(shared.link.expires_at) or 0,
            up_to_turn=shared.link.up_to_turn,
        )
    )


async def read(
    core: Core,
    shared: Found,
    *,
    after: Seq = None,
    before: Seq = None,
    tail: bool = False,
    limit: Limit = 200,
) -> Response:
    """With the token of a share link: its transcript, oldest first, without the workspace's path."""
    span = await core.links.messages(shared, find_place(after, before, None, tail=tail), limit)
    page = await shape(partial(core.loop_turns.slice, shared.link.app_name), span.rows, shapes.message)
    return json_response(
        SharedMessages(messages=page, count=len(page), next=span.next, previous=span.previous)
    )


def _fields(row: LinkRow) -> Json:
    return {
        "share_id": row.share_id,
        "created_at": to_seconds(row.created_at),
        "expires_at": to_seconds(row.expires_at),
        "up_to_turn": row.up_to_turn,
    }
