"""Lets a browser log in once with a token and use a cookie from then on, for pages of this origin."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from clawdforge.core.services.access import LOGIN_SECS
from clawdforge.http.auth import cookie_name
from clawdforge.http.errors import json_response
from clawdforge.http.routing import Core, OpenRoute
from clawdforge.wire.admin import Done
from clawdforge.wire.browser import LoginReply, LoginRequest
from clawdforge.wire.error_body import ErrorBody


def login_router() -> APIRouter:
    router = APIRouter(route_class=OpenRoute, tags=["browser"], responses={"default": {"model": ErrorBody}})
    router.post("/login", response_model=LoginReply)(login)
    router.post("/logout", response_model=Done)(logout)
    return router


async def login(request: Request, core: Core, body: LoginRequest) -> Response:
    """Take a token and set a cookie that stands for it, on requests of this origin's pages only."""
    value = await core.access.login(body.token)
    principal = await core.access.authenticate_login(value)
    return _with_cookie(request, {"ok": True, "app_name": principal.app}, value, LOGIN_SECS)


async def logout(request: Request) -> Response:
    """Forget the cookie."""
    return _with_cookie(request, {"ok": True}, "", 0)


def _with_cookie(request: Request, body: dict[str, object], value: str, seconds: int) -> Response:
    response = json_response(body)
    response.set_cookie(
        cookie_name(request),
        value,
        max_age=seconds,
        path="/",
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return response
