"""Bearer token to principal: for apps, for the operator, and for `/api` on a machine that trusts itself."""

import ipaddress

from starlette.requests import Request

from clawdforge.core.access import LOCAL_APP
from clawdforge.core.errors import Forbidden, Unauthenticated
from clawdforge.core.model import Principal
from clawdforge.core.services import Services
from clawdforge.http.settings import HttpSettings


async def authenticate(request: Request) -> Principal:
    """Missing, wrong, revoked and expired credentials all raise the same."""
    services: Services = request.app.state.services
    credentials = request.headers.getlist("authorization")
    if not credentials and _trusted(request):
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


def _trusted(request: Request) -> bool:
    settings: HttpSettings = request.app.state.settings
    if not settings.trust_loopback or not request.url.path.startswith("/api/") or request.client is None:
        return False
    try:
        return ipaddress.ip_address(request.client.host).is_loopback
    except ValueError:
        return False
