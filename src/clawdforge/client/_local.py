"""Which server to talk to: arguments, then the environment, then what a local server left on disk."""

import json
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from clawdforge.client.errors import NoServerKnown
from clawdforge.wire.local import (
    ENV_TOKEN,
    ENV_URL,
    LOCK_FILE,
    TOKEN_FILE,
    data_dir_default,
    default_url,
)


def find_server(base_url: str | None, token: str | None, env: Mapping[str, str]) -> tuple[str, str]:
    """Address and token. The local token is only ever sent to this machine."""
    url = base_url or env.get(ENV_URL)
    token = token if token is not None else env.get(ENV_TOKEN)
    folder = data_dir_default(env)
    if not url:
        url = _lock_url(folder) or (default_url() if token is not None else None)
    if not url:
        raise NoServerKnown(
            f"no server is known: start one with `clawdforge serve`, or set {ENV_URL} and {ENV_TOKEN}"
            f" (looked for {folder / LOCK_FILE})"
        )
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise NoServerKnown(f"{url!r} is not the address of a server: it begins with http:// or https://")
    if token is None:
        token = _local_token(folder) if is_loopback(url) else None
    if token is None:
        raise NoServerKnown(
            f"no token for {url}: pass token=…, or set {ENV_TOKEN}"
            f" (the one in {folder / TOKEN_FILE} is for a server on this machine only)"
        )
    return url.rstrip("/"), token


def _lock_url(folder: Path) -> str | None:
    try:
        noted = json.loads((folder / LOCK_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    url = noted.get("url") if isinstance(noted, dict) else None
    return url if isinstance(url, str) and url else None


def _local_token(folder: Path) -> str | None:
    try:
        return (folder / TOKEN_FILE).read_text(encoding="utf-8").strip() or None
    except (OSError, ValueError):
        return None


def is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
