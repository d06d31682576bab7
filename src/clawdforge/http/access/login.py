"""Lets a browser log in with a token or a code and use a cookie from then on, in pages of this origin."""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

from clawdforge.core.models.principal import Principal
from clawdforge.core.services.all import Services
from clawdforge.http.access.auth import (
    check_operators_way,
    cookie_name,
    refuse_agents,
    require_admin,
    require_app,
)
from clawdforge.http.access.own_page import tells_no_site
from clawdforge.http.errors import json_response
from clawdforge.http.routers import Router
from clawdforge.http.routing import Core, OpenRoute
from clawdforge.wire.admin import Done
from clawdforge.wire.browser import LoginReply, LoginRequest, LogoutRequest
from clawdforge.wire.errors import Forbidden, Unauthenticated


def login_router() -> Router:
    router = Router(OpenRoute, tags=["browser"])
    router.get("/login", response_model=LoginReply)(show_login)
    router.post("/login", response_model=LoginReply)(login)
    router.post("/logout", response_model=Done)(logout)
    return router


async def show_login(request: Request) -> Response:
    """Who the caller is, by token or cookie; for nobody `app_name` is null and `operator` false."""
    app = await _try(require_app, request)
    operator = await _try(require_admin, request)
    return json_response(_describe(request, app, is_operator=operator is not None))


async def login(request: Request, core: Core, body: LoginRequest) -> Response:
    """Take a token or a code and set a cookie that stands for it, on requests of this origin's pages only."""
    check_browser(request)
    principal = await _find_principal(request, core, body)
    if principal.admin:
        await check_operators_way(request)
    return await let_in(request, core, principal)


async def let_in(request: Request, core: Services, principal: Principal) -> Response:
    """The answer that sets the cookie of somebody who has shown a token or a code."""
    value, seconds = await core.logins.log_in(principal)
    app = None if principal.admin else principal
    response = json_response(_describe(request, app, is_operator=principal.admin))
    _set_cookie(request, response, value, seconds, is_operators=principal.admin)
    return response


async def logout(request: Request, core: Core, body: LogoutRequest) -> Response:
    """Forget the cookies of this browser; with `everywhere`, end every login of the same token."""
    if body.everywhere:
        found = [await _try(require_app, request), await _try(require_admin, request)]
        known = [principal for principal in found if principal is not None]
        if not known:
            raise Unauthenticated("nobody is logged in here, so nothing was ended; log in first")
        for principal in known:
            await core.logins.end_all(principal)
    return let_out(request)


def let_out(request: Request) -> Response:
    """The answer that takes the cookies of a browser away."""
    response = json_response(Done())
    for is_operators in (False, True):
        _set_cookie(request, response, "", 0, is_operators=is_operators)
    return response


async def _find_principal(request: Request, core: Services, body: LoginRequest) -> Principal:
    """A stranger is not looked at, which takes long, and an agent does not use up a code."""
    if body.code is None:
        principal = await core.access.authenticate(body.token or "")
        await refuse_agents(request)
        return principal
    await core.logins.check_code(body.code)
    await refuse_agents(request)
    return await core.logins.use_code(body.code)


async def _try(require: Callable[[Request], Awaitable[Principal]], request: Request) -> Principal | None:
    try:
        return await require(request)
    except (Unauthenticated, Forbidden):
        return None


def check_browser(request: Request) -> None:
    """Say now that a cookie would not count afterwards, and not by refusing every request that brings it."""
    is_browser = "origin" in request.headers
    if is_browser and "sec-fetch-site" not in request.headers and not tells_no_site(request):
        raise Forbidden(
            "this browser does not say which page its requests come from (it sends no Sec-Fetch-Site), so a"
            " login would not count here; use a newer one"
        )


def _describe(request: Request, app: Principal | None, *, is_operator: bool) -> LoginReply:
    return LoginReply(
        app_name=None if app is None else app.app,
        scopes=[] if app is None else sorted(app.scopes),
        operator=is_operator,
        version=request.app.state.settings.version,
    )


def _set_cookie(
    request: Request, response: Response, value: str, seconds: int, *, is_operators: bool
) -> None:
    # A proxy in front may speak HTTPS with the browser; then the page's origin tells.
    is_https = request.url.scheme == "https" or request.headers.get("origin", "").startswith("https://")
    response.set_cookie(
        cookie_name(request, is_operators=is_operators),
        value,
        max_age=seconds,
        path="/",
        httponly=True,
        samesite="strict",
        secure=is_https,
    )
