"""hermes routes about logging in: its page asks for a password, and an app's token is one."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from clawdforge.http.auth import refuse_agents
from clawdforge.http.dialects.hermes.route import ERRORS, OpenHermesRoute
from clawdforge.http.login import check_browser, let_in, let_out
from clawdforge.http.routing import Core
from clawdforge.wire.admin import Done
from clawdforge.wire.browser import LoginReply
from clawdforge.wire.errors import Unauthenticated
from clawdforge.wire.hermes import PasswordLogin


def routes(prefix: str) -> APIRouter:
    found = APIRouter(prefix=prefix, route_class=OpenHermesRoute, tags=["hermes dialect"], responses=ERRORS)
    found.post("/api/auth/login", response_model=LoginReply)(login)
    found.post("/api/auth/logout", response_model=Done)(logout)
    return found


async def login(request: Request, core: Core, body: PasswordLogin) -> Response:
    """Take an app's token as the password, and set the cookie of a login as `POST /login` does."""
    check_browser(request)
    principal = await core.access.authenticate(body.password)
    await refuse_agents(request)
    if principal.admin:
        raise Unauthenticated("this is the operator's token, and the operator has no sessions; use an app's")
    return await let_in(request, core, principal)


async def logout(request: Request) -> Response:
    """Forget the cookies of this browser."""
    return let_out(request)
