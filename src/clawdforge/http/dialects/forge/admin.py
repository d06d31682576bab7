"""Forge routes for operators: health, readiness, and the tokens of apps."""

from typing import Annotated

from starlette.responses import Response

from clawdforge.http.dialects.forge import shapes
from clawdforge.http.errors import UNREADY, json_response
from clawdforge.http.requests.marks import Query
from clawdforge.http.routers import Router
from clawdforge.http.routing import AdminRoute, Core, OpenRoute
from clawdforge.wire.admin import CreateToken, Done, Health, Ready, TokenPage, TokenReply


def open_routes() -> Router:
    router = Router(OpenRoute, tags=["health"])
    router.get("/healthz", response_model=Health)(healthz)
    router.get("/readyz", response_model=Ready, responses={UNREADY: {"model": Ready}})(readyz)
    return router


def admin_routes() -> Router:
    router = Router(AdminRoute, tags=["admin"])
    router.post("/admin/tokens", response_model=TokenReply)(create_token)
    router.get("/admin/tokens", response_model=TokenPage)(list_tokens)
    router.delete("/admin/tokens/{token_id}", response_model=Done)(revoke_token)
    return router


async def healthz(core: Core) -> Response:
    """Whether the server is running, and how it is set up. Needs no token."""
    health = await core.health.health()
    return json_response(health)


async def readyz(core: Core) -> Response:
    """Whether the store can be written."""
    ready = await core.health.ready()
    return json_response(ready, 200 if ready.ok else UNREADY)


async def create_token(core: Core, body: CreateToken) -> Response:
    """Create a token for an app, and the app if it is new. The token is shown only this once."""
    token, row = await core.access.create_token(body)
    return json_response(shapes.new_token(token, row))


async def list_tokens(core: Core, app_name: Annotated[str | None, Query(max_length=128)] = None) -> Response:
    """All tokens, or those of one app, without their secrets."""
    rows = [shapes.token(row) for row in await core.access.tokens(app_name)]
    return json_response(TokenPage(tokens=rows, count=len(rows)))


async def revoke_token(core: Core, token_id: str) -> Response:
    """Revoke a token at once, and end its open streams."""
    await core.access.revoke(token_id)
    return json_response(Done())
