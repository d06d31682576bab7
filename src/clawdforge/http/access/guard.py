"""Checks Host, Origin and Sec-Fetch-Site of every request: protects against web pages and DNS rebinding."""

from clawdforge.wire.errors import ForgeAPIError, HostRefused, OriginRefused

ALWAYS = ("localhost", "127.0.0.1", "[::1]")
PAGE = "/ui/"
DEFAULT_PORTS = {"http": "80", "https": "443"}


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

    def refusal(self, headers: list[tuple[bytes, bytes]], path: str = "") -> ForgeAPIError | None:
        """Why this request is not served, or None.

        A link on another site may lead to our page: the same for everybody, and loaded without a cookie.
        """
        hosts = [value.decode("latin-1") for name, value in headers if name == b"host"]
        host = split_authority(hosts[0]) if len(hosts) == 1 else None
        if host is None or not (self._any or host[0] in self._names):
            return HostRefused()
        follows_link = path.startswith(PAGE) and (b"sec-fetch-mode", b"navigate") in headers
        for name, value in headers:
            if name == b"origin" and not self._same_origin(value.decode("latin-1"), host):
                return OriginRefused()
            is_foreign = name == b"sec-fetch-site" and value.strip().lower() == b"cross-site"
            if is_foreign and not follows_link:
                return OriginRefused()
        return None

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
