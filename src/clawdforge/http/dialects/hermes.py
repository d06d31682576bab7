"""The hermes dialect: all of its routers. With a prefix it is served there as well, its list included."""

from fastapi import APIRouter
from starlette.responses import Response

from clawdforge.http.dialects import (
    hermes_approvals,
    hermes_chat,
    hermes_history,
    hermes_sessions,
    hermes_unserved,
)
from clawdforge.http.dialects.hermes_route import ERRORS
from clawdforge.http.errors import json_response
from clawdforge.http.routing import OpenRoute
from clawdforge.wire.hermes import HermesHealth


def routers(prefix: str = "") -> list[APIRouter]:
    """`/api/sessions` without a prefix belongs to another dialect, so the list is under the prefix only."""
    found = _all("")
    return [*found, *_all(prefix), hermes_sessions.list_routes(prefix)] if prefix else found


def _all(prefix: str) -> list[APIRouter]:
    health = APIRouter(prefix=prefix, route_class=OpenRoute, tags=["hermes dialect"], responses=ERRORS)
    health.get("/health", response_model=HermesHealth)(alive)
    return [
        health,
        hermes_sessions.routes(prefix),
        hermes_history.routes(prefix),
        hermes_chat.routes(prefix),
        hermes_approvals.routes(prefix),
        hermes_unserved.routes(prefix),
    ]


async def alive() -> Response:
    """Whether the server answers. `/healthz` says more."""
    return json_response({"ok": True, "status": "ok"})
