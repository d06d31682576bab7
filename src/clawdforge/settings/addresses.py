"""What addresses in settings say: who can reach one, and which of their words are secrets."""

import ipaddress
from urllib.parse import parse_qs, unquote, urlsplit


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine can reach a server that listens on `host`."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def find_secrets(*urls: str | None) -> tuple[str, ...]:
    """The passwords of databases, as they are written and as they are meant."""
    places = [urlsplit(url or "") for url in urls]
    said = [word for one in places for word in (one.password, *parse_qs(one.query).get("password", ()))]
    return tuple({word for given in said if given for word in (given, unquote(given))})
