"""Resolves credentials to a principal: a token, a login, the operator's socket, or a trusted machine."""

from typing import Final

from starlette.requests import Request

from clawdforge.core.models.principal import Principal
from clawdforge.core.ports import Standing
from clawdforge.core.services.access import LOCAL_APP
from clawdforge.core.services.all import Services
from clawdforge.http.access.own_page import NOT_OURS, is_from_own_page
from clawdforge.http.access.trust import is_trusted
from clawdforge.http.connections.connection import (
    identify_caller,
    is_from_agent,
    is_on_unix_socket,
    may_be_agent,
)
from clawdforge.http.head import head_of
from clawdforge.http.settings import HttpSettings
from clawdforge.wire.errors import Forbidden, Unauthenticated
from clawdforge.wire.scopes import Scope

WHO: Final = {
    Standing.AGENT: "an agent",
    Standing.STRANGER: "another user",
    Standing.UNKNOWN: "a program that could not be found out",
}


async def authenticate(request: Request, *, for_operator: bool = False) -> Principal:
    """Missing, wrong, revoked and expired credentials all raise the same error.

    A browser may hold a cookie of an app and one of the operator; the one that the route is for counts.
    """
    services: Services = request.scope["app"].state.services
    credentials = head_of(request.scope).list(b"authorization")
    if not credentials:
        login = _find_login(request, for_operator=for_operator)
        if login is not None and is_from_own_page(request):
            value, is_operators = login
            principal = await services.logins.authenticate(value, is_operators=is_operators)
            await refuse_agents(request)
            return principal
        if is_on_unix_socket(request):
            return await _operator(request)
        if await is_trusted(request):
            return Principal(app=LOCAL_APP, scopes=frozenset(Scope))
        if login is not None:
            raise Unauthenticated(NOT_OURS)
    said = credentials[0].decode("latin-1") if len(credentials) == 1 else ""
    scheme, _, token = said.partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token:
        raise Unauthenticated
    return await services.access.authenticate(token)


async def require_app(request: Request) -> Principal:
    """The caller's principal, which must be an app. The operator is none and has no sessions."""
    principal = await authenticate(request)
    if principal.admin:
        raise Forbidden("the admin token belongs to no app; make an app token with POST /admin/tokens")
    return principal


def require_scope(request: Request, scope: Scope | None) -> None:
    """Refuse a caller whose token lacks a scope. No id has been looked at, so nothing is told by it."""
    principal: Principal = request.scope["state"]["principal"]
    if scope is not None and scope not in principal.scopes:
        had = ", ".join(sorted(principal.scopes)) or "none"
        raise Forbidden(f"this needs a token with the scope {scope}; yours has {had}")


async def require_admin(request: Request) -> Principal:
    principal = await authenticate(request, for_operator=True)
    if not principal.admin:
        raise Forbidden("this needs the admin token; the server keeps it in admin.token in its data folder")
    await check_operators_way(request)
    return principal


async def refuse_agents(request: Request) -> None:
    """A browser's cookie is sent to agents too, if they serve a page on its host; it must not help them."""
    if await may_be_agent(request):
        raise Forbidden(
            "a login counts only for a browser, and this server cannot tell that no agent sends this request;"
            " try again, or send a token"
        )


async def check_operators_way(request: Request) -> None:
    """Refuse an operator who is an agent, or who comes where this server does not serve its operator."""
    if await is_from_agent(request):
        raise Forbidden("an agent cannot act as the operator, whatever token it has")
    settings: HttpSettings = request.app.state.settings
    if not settings.admin_over_tcp and not is_on_unix_socket(request):
        raise Forbidden(
            "this server listens beyond loopback and serves its operator on operator.sock in its data folder"
            " only; use the command line there, or set CLAWDFORGE_ADMIN_BEYOND_LOOPBACK=1"
        )


async def _operator(request: Request) -> Principal:
    """Who connects to the operator's socket is the operator, unless an agent got there."""
    standing = await identify_caller(request)
    if standing is not Standing.OWNER:
        raise Unauthenticated(
            f"the operator's socket serves the server's own user and root, and this is {WHO[standing]};"
            " send a token"
        )
    return Principal(app="", admin=True)


def _find_login(request: Request, *, for_operator: bool) -> tuple[str, bool] | None:
    """The value of a cookie, and whether it is the operator's."""
    for is_operators in (for_operator, not for_operator):
        value = request.cookies.get(cookie_name(request, is_operators=is_operators))
        if value is not None:
            return value, is_operators
    return None


def cookie_name(request: Request, *, is_operators: bool = False) -> str:
    """A name for each port, because browsers share cookies between all ports of a host."""
    return f"clawdforge_{'operator' if is_operators else 'session'}_{request.url.port or 0}"
