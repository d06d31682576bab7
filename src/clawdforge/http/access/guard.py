"""Checks Host, Origin and Sec-Fetch-Site of every request: protects against web pages and DNS rebinding."""

from typing import Final

from clawdforge.http.head import Head
from clawdforge.wire.errors import ForgeAPIError, HostRefused, OriginRefused

ALWAYS = ("localhost", "127.0.0.1", "[::1]")
PAGE = "/ui/"
DEFAULT_PORTS = {"http": "80", "https": "443"}
MAX_KNOWN: Final = 100
"""Hosts that were let in. Few are sent, again and again."""


def split_authority(text: str) -> tuple[str, str] | None:
    """Name and port of `name:port` or `[v6]:port`, in lower case; None when it is neither."""
    text = text.strip().lower()
    name, bracket, rest = text.partition("]")
    if bracket:
        name += "]"
        if not name.startswith("["):
            return None
    else:
        name, colon, port = text.partition(":")
        rest = colon + port
    port = rest.removeprefix(":")
    if not name or (rest and not rest.startswith(":")) or not (port == "" or port.isdecimal()):
        return None
    if any(char in name for char in "/@?#\\ ,"):
        return None
    return name, port


class Guard:
    """Decides before routing, from the headers alone. CORS is off: no reply ever allows a foreign origin."""

    def __init__(self, bind_host: str, allowed_hosts: tuple[str, ...]) -> None:
        bind = f"[{bind_host}]" if ":" in bind_host and not bind_host.startswith("[") else bind_host
        self._any = "*" in allowed_hosts
        self._names = {name.lower() for name in (*ALWAYS, bind, *allowed_hosts)}
        self._known: dict[bytes, tuple[str, str]] = {}

    def refusal(self, head: Head, path: str = "") -> ForgeAPIError | None:
        """Why this request is not served, or None.

        A link on another site may lead to our page: the same for everybody, and loaded without a cookie.
        """
        hosts = head.list(b"host")
        host = self._find_host(hosts[0]) if len(hosts) == 1 else None
        if host is None:
            return HostRefused()
        for origin in head.list(b"origin"):
            if not self._same_origin(origin.decode("latin-1"), host):
                return OriginRefused()
        for site in head.list(b"sec-fetch-site"):
            if site.strip().lower() == b"cross-site" and not _follows_link(head, path):
                return OriginRefused()
        return None

    def _find_host(self, said: bytes) -> tuple[str, str] | None:
        """Its name and port, if it is served."""
        host = self._known.get(said)
        if host is None:
            host = split_authority(said.decode("latin-1"))
            if host is None or not (self._any or host[0] in self._names):
                return None
            if len(self._known) < MAX_KNOWN:
                self._known[said] = host
        return host

    def _same_origin(self, origin: str, host: tuple[str, str]) -> bool:
        # Another port is another origin, since agents may serve pages on this machine too.
        scheme, found, authority = origin.strip().lower().partition("://")
        parts = split_authority(authority) if found else None
        if parts is None or scheme not in DEFAULT_PORTS:
            return False
        name, port = parts
        default = DEFAULT_PORTS[scheme]
        known = name == host[0] or name in self._names
        return known and (port or default) == (host[1] or default)


def _follows_link(head: Head, path: str) -> bool:
    return path.startswith(PAGE) and b"navigate" in head.list(b"sec-fetch-mode")
