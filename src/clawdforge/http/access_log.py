"""Logs one line for each request: its route, its status and how long it took."""

import logging
import time
from typing import Final

from starlette.types import Scope

log = logging.getLogger(__name__)
NO_ROUTE = "(no route)"
STATUS: Final = "status"
"""In the state of a request: that of its answer, once it has begun."""


def log_request(scope: Scope, method: str, began: float) -> None:
    """Its status is None when the client hung up before there was one."""
    if not log.isEnabledFor(logging.INFO):
        return
    state = scope["state"]
    status = state[STATUS]
    principal = state.get("principal")
    path = getattr(scope.get("route"), "path", NO_ROUTE)
    ms = round((time.perf_counter() - began) * 1000, 3)
    log.info(
        "%s %s %s",
        method,
        path,
        status or "gone",
        extra={
            "request_id": state["request_id"],
            "method": method,
            "path": path,
            "status": status,
            "ms": ms,
            "app": (principal.app or None) if principal else None,
            "session_id": scope.get("path_params", {}).get("session_id"),
        },
    )
