"""hermes routes about logging in: its page asks for a password, and an app's token is one."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from clawdforge.http.access.auth import refuse_agents
from clawdforge.http.access.login import check_browser, let_in, let_out, show_login
from clawdforge.http.access.trust import is_trusted
from clawdforge.http.dialects.hermes.route import OpenHermesRoute
from clawdforge.http.routers import Router
from clawdforge.http.routing import Core
from clawdforge.wire.admin import Done
from clawdforge.wire.browser import LoginReply
from clawdforge.wire.errors import Unauthenticated
from clawdforge.wire.hermes import PasswordLogin

TOKEN: Final = "cf_"  # noqa: S105 - how tokens begin


def routes(prefix: str) -> Router:
    found = Router(OpenHermesRoute, prefix=prefix, tags=["hermes dialect"])
    found.post("/api/auth/login", response_model=LoginReply)(login)
    found.post("/api/auth/logout", response_model=Done)(logout)
    return found


async def login(request: Request, core: Core, body: PasswordLogin) -> Response:
    """Take an app's token as the password, and set the cookie of a login as `POST /login` does.

    Where nobody has to log in, what is no token at all is as good as none: it succeeds, without a cookie.
    """
    check_browser(request)
    try:
        principal = await core.access.authenticate(body.password)
    except Unauthenticated:
        if body.password.startswith(TOKEN) or not await is_trusted(request):
            raise
        return await show_login(request)
    await refuse_agents(request)
    if principal.admin:
        raise Unauthenticated("this is the operator's token, and the operator has no sessions; use an app's")
    return await let_in(request, core, principal)


async def logout(request: Request) -> Response:
    """Forget the cookies of this browser."""
    return let_out(request)
