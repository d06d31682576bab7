"""One question to a server over the standard library alone: the HTTP client's import takes longer."""

from http.client import HTTPConnection, HTTPSConnection
from urllib.parse import urlsplit


def fetch(url: str, token: str, path: str, timeout: float) -> tuple[int, bytes]:
    """Status and body, whatever they are."""
    parts = urlsplit(url)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=timeout)
    try:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        connection.request("GET", parts.path.rstrip("/") + path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()
