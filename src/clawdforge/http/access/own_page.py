"""Decides whether a request with a browser's cookie comes from a page of this server.

A browser sends a cookie to every port of a host, whoever serves there, and agents may. It says in
`Sec-Fetch-Site` which page asks; but over plain HTTP it says so on loopback only. Elsewhere it names the page
of every write in `Origin`. A read of another page has no `Origin` where that page cannot see the answer.
"""

import ipaddress
from typing import Final

from starlette.requests import Request

from clawdforge.http.access.guard import DEFAULT_PORTS, split_authority
from clawdforge.wire.scopes import Scope

OWN_PAGE: Final = frozenset({"same-origin", "none"})
"""`Sec-Fetch-Site` of requests from this server's own page, or from the person at the browser."""

SAFE_METHODS: Final = frozenset({"GET", "HEAD"})
CHANGING: Final = frozenset({Scope.PROMPT, Scope.DECIDE})
"""A GET that needs one of these changes something."""

NOT_OURS: Final = (
    "a login counts only in pages of this server itself, and the browser did not say that this is one"
    " (Sec-Fetch-Site, Origin); send a token"
)


def is_from_own_page(request: Request) -> bool:
    """Whether a cookie may count for this request."""
    writes = changes_something(request)
    sites = request.headers.getlist("sec-fetch-site")
    if sites:
        return all(site == "same-origin" or (site in OWN_PAGE and not writes) for site in sites)
    origins = request.headers.getlist("origin")
    if origins:
        return all(is_own_origin(request, origin) for origin in origins)
    return not writes and tells_no_site(request)


def changes_something(request: Request) -> bool:
    route = getattr(request.scope.get("route"), "path_format", "")
    scope = request.app.state.scopes.get((request.method, route))
    return request.method not in SAFE_METHODS or scope in CHANGING


def is_own_origin(request: Request, origin: str) -> bool:
    """Whether a page of this origin and this request have the same host and port."""
    scheme, _, authority = origin.strip().lower().partition("://")
    theirs, ours = split_authority(authority), split_authority(request.headers.get("host", ""))
    if scheme not in DEFAULT_PORTS or theirs is None or ours is None:
        return False
    default = DEFAULT_PORTS[scheme]
    return theirs[0] == ours[0] and (theirs[1] or default) == (ours[1] or default)


def tells_no_site(request: Request) -> bool:
    """Whether browsers send no Sec-Fetch-Site to this address: plain HTTP to another machine."""
    host = request.url.hostname or ""
    return request.url.scheme == "http" and not _is_loopback_name(host)


def _is_loopback_name(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
