"""Decides whether a request without a credential is trusted because it was made on this machine."""

import ipaddress
import re
from typing import Final

from starlette.requests import Request

from clawdforge.core.ports import Standing
from clawdforge.http.access.own_page import OWN_PAGE
from clawdforge.http.connections.connection import identify_caller
from clawdforge.http.settings import HttpSettings
from clawdforge.wire.errors import Unauthenticated

PROXIED: Final = re.compile(
    r"forward|prox(?:y|ied)|client-?ip|real-?ip|remote-|connecting-ip|original|originating"
    r"|^via$|^x-via|^x-host$|^x-scheme$|^front-end-https$|^cdn-|^cf-|^fly-|^fastly-|^ngrok-|^tailscale-"
    r"|^x-(?:envoy|amzn|amz-cf|azure|arr|appengine|cloud-trace|nginx|vercel|akamai|edge)"
)
"""Names of headers that tell of a client or a proxy behind the connection. The list is generous: who sends
one of these can send a token too."""

HEALTH: Final = "/health"
"""Of the same dialect, and open to everybody; to those who are trusted it tells a little more."""

SAY_TOKEN: Final = "send an app's token, or log in with one at POST /login"  # noqa: S105 - a hint, not a secret


async def is_trusted(request: Request) -> bool:
    """Whether a program on this machine or a page of this origin calls, not a page that an agent serves.

    Raises Unauthenticated with the reason where the flag is set and the request still is not trusted.
    """
    settings: HttpSettings = request.app.state.settings
    path = request.url.path.removeprefix(settings.hermes_prefix)
    is_dialect = path.startswith("/api/") or path == HEALTH
    if not settings.trust_loopback or not is_dialect or request.client is None:
        return False
    if request.headers.get("sec-fetch-site", "none") not in OWN_PAGE or not _is_loopback(request.client.host):
        return False
    proxied = next((name for name in request.headers if PROXIED.search(name)), None)
    if proxied is not None:
        raise Unauthenticated(f"a request with the header {proxied} is never trusted; {SAY_TOKEN}")
    standing = await identify_caller(request)
    if standing is Standing.AGENT:
        raise Unauthenticated(f"an agent's own requests are never trusted; {SAY_TOKEN}")
    if standing is Standing.UNKNOWN:
        raise Unauthenticated(f"the program that sent this could not be found out; {SAY_TOKEN}")
    return True


def _is_loopback(host: str) -> bool:
    try:
        found = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found).is_loopback
