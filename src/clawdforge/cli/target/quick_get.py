"""One question to a server over the standard library alone, for commands that must answer at once.

The SDK is the way to talk to a server. Its import takes longer than a whole `sessions list` may.
"""

import json
from http.client import HTTPException
from typing import Any, Final
from urllib.parse import urlencode

from clawdforge.cli.failures import Failure, refusal, unreachable
from clawdforge.client._fetch import fetch

TIMEOUT_SECS: Final = 30.0


def get(url: str, token: str, path: str, timeout: float = TIMEOUT_SECS, **params: object) -> dict[str, Any]:
    """The JSON object at `path`; raises Failure."""
    query = urlencode({name: _text(value) for name, value in params.items() if value is not None})
    try:
        status, body = fetch(url, token, f"{path}?{query}" if query else path, timeout)
    except TimeoutError:
        raise unreachable(url, "no answer in time") from None
    except (OSError, HTTPException) as error:
        raise unreachable(url, str(error) or type(error).__name__) from None
    try:
        found = json.loads(body)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Failure(f"{url} answered {status} with something else than JSON; is it a clawdforge server?")
    if status >= 400:
        raise refusal(status, str(found.get("code")), str(found.get("error")))
    return found


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
