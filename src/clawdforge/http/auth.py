"""Credentials to principals: bearer tokens, a browser's login, and `/api` on a machine that trusts itself."""

import ipaddress
from typing import Final

from starlette.requests import Request

from clawdforge.core.model import Principal
from clawdforge.core.services.access import LOCAL_APP
from clawdforge.core.services.all import Services
from clawdforge.http.settings import HttpSettings
from clawdforge.wire.errors import Forbidden, Unauthenticated

OWN_PAGE: Final = frozenset({"same-origin", "none"})
"""`Sec-Fetch-Site` of a request that this server's own page, or the person at the browser, makes."""


async def authenticate(request: Request) -> Principal:
    """Missing, wrong, revoked and expired credentials all raise the same."""
    services: Services = request.app.state.services
    credentials = request.headers.getlist("authorization")
    if not credentials:
        login = request.cookies.get(cookie_name(request))
        if login is not None and request.headers.get("sec-fetch-site") in OWN_PAGE:
            return await services.access.authenticate_login(login)
        if _trusted(request):
            return Principal(app=LOCAL_APP)
    scheme, _, token = (credentials[0] if len(credentials) == 1 else "").partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token:
        raise Unauthenticated
    return await services.access.authenticate(token)


async def as_app(request: Request) -> Principal:
    """The caller's app. The operator has none, and therefore no sessions."""
    principal = await authenticate(request)
    if principal.admin:
        raise Forbidden("the admin token belongs to no app; make an app token with POST /admin/tokens")
    return principal


async def as_admin(request: Request) -> Principal:
    principal = await authenticate(request)
    if not principal.admin:
        raise Forbidden("this needs the admin token")
    return principal


def cookie_name(request: Request) -> str:
    """One for each port: browsers share cookies between all the servers of a host."""
    return f"clawdforge_session_{request.url.port or 0}"


def _trusted(request: Request) -> bool:
    """Programs on this machine, and pages of this very origin; not a page that an agent serves next door."""
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
