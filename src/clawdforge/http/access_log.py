"""Logs one line for each request: its route, its status and how long it took."""

import logging
import time

from starlette.types import Scope

log = logging.getLogger(__name__)
NO_ROUTE = "(no route)"


def log_request(scope: Scope, method: str, status: int | None, began: float) -> None:
    """`status` is None when the client hung up before there was one."""
    state = scope["state"]
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
