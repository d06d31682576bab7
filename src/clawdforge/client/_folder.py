"""What a local server left in its data folder: its address and its token. Light to import."""

import json
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from clawdforge.wire.local import LOCK_FILE, TOKEN_FILE


def lock_url(folder: Path) -> str | None:
    try:
        noted = json.loads((folder / LOCK_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    url = noted.get("url") if isinstance(noted, dict) else None
    return url if isinstance(url, str) and url else None


def local_token(folder: Path) -> str | None:
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
