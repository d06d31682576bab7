"""Resolves credentials to a principal: a bearer token, a browser's login, or a trusted machine."""

import ipaddress
from typing import Final

from starlette.requests import Request

from clawdforge.core.model import Principal
from clawdforge.core.services.access import LOCAL_APP
from clawdforge.core.services.all import Services
from clawdforge.http.settings import HttpSettings
from clawdforge.wire.errors import Forbidden, Unauthenticated

OWN_PAGE: Final = frozenset({"same-origin", "none"})
"""`Sec-Fetch-Site` of requests from this server's own page, or from the person at the browser."""


async def authenticate(request: Request) -> Principal:
    """Missing, wrong, revoked and expired credentials all raise the same error."""
    services: Services = request.app.state.services
    credentials = request.headers.getlist("authorization")
    if not credentials:
        login = request.cookies.get(cookie_name(request))
        if login is not None and request.headers.get("sec-fetch-site") in OWN_PAGE:
            return await services.access.authenticate_login(login)
        if _is_trusted(request):
            return Principal(app=LOCAL_APP)
    scheme, _, token = (credentials[0] if len(credentials) == 1 else "").partition(" ")
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


async def require_admin(request: Request) -> Principal:
    principal = await authenticate(request)
    if not principal.admin:
        raise Forbidden("this needs the admin token; the server keeps it in admin.token in its data folder")
    return principal


def cookie_name(request: Request) -> str:
    """A name for each port, because browsers share cookies between all ports of a host."""
    return f"clawdforge_session_{request.url.port or 0}"


def _is_trusted(request: Request) -> bool:
    """Whether a program on this machine or a page of this origin calls, not a page that an agent serves."""
    settings: HttpSettings = request.app.state.settings
    path = request.url.path.removeprefix(settings.hermes_prefix)
    if not settings.trust_loopback or not path.startswith("/api/") or request.client is None:
        return False
    if request.headers.get("sec-fetch-site", "none") not in OWN_PAGE:
        return False
    try:
        return ipaddress.ip_address(request.client.host).is_loopback
    except ValueError:
        return False
