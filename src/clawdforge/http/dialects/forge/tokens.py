"""Forge routes about an app's own tokens and the logins they open, for the app itself."""

from starlette.responses import Response

from clawdforge.http.dialects.forge import shapes
from clawdforge.http.errors import json_response
from clawdforge.http.routers import Router
from clawdforge.http.routing import AppRoute, Caller, Core
from clawdforge.wire.admin import CreateOwnToken, Done, TokenPage, TokenReply
from clawdforge.wire.base import to_seconds
from clawdforge.wire.browser import LoginCode


def routes() -> Router:
    router = Router(AppRoute, tags=["tokens"])
    router.get("/tokens", response_model=TokenPage)(list_tokens)
    router.post("/tokens", response_model=TokenReply)(create_token)
    router.delete("/tokens/{token_id}", response_model=Done)(revoke_token)
    router.post("/login/codes", response_model=LoginCode)(make_login_code)
    return router


async def list_tokens(core: Core, caller: Caller) -> Response:
    """The app's tokens, without their secrets."""
    rows = [shapes.token(row) for row in await core.access.tokens(caller.app)]
    return json_response(TokenPage(tokens=rows, count=len(rows)))


async def create_token(core: Core, caller: Caller, body: CreateOwnToken) -> Response:
    """Create a token of the same app, with no scope that yours lacks, that expires no later than yours."""
    token, row = await core.access.create_own_token(caller, body)
    return json_response(shapes.new_token(token, row))


async def revoke_token(core: Core, caller: Caller, token_id: str) -> Response:
    """Revoke a token of the app that has no scope that yours lacks, and end its open streams."""
    await core.access.revoke_own(caller, token_id)
    return json_response(Done())


async def make_login_code(core: Core, caller: Caller) -> Response:
    """A code that logs a browser in as this token does: once, and within a minute."""
    code, expires_at = await core.logins.make_code(caller)
    return json_response(LoginCode(code=code, expires_at=to_seconds(expires_at) or 0))
