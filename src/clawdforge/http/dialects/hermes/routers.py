"""The hermes dialect: all of its routers. With a prefix it is served there as well, its list included."""

from starlette.requests import Request
from starlette.responses import Response

from clawdforge.http.dialects.hermes import (
    approvals,
    chat,
    history,
    live,
    login,
    quiet,
    sessions,
    unserved,
    uploads,
)
from clawdforge.http.dialects.hermes.route import OpenHermesRoute
from clawdforge.http.errors import json_response
from clawdforge.http.routers import Router
from clawdforge.http.routing import AppRoute, Core, admit
from clawdforge.wire.base import Json, to_float
from clawdforge.wire.errors import Forbidden, LimitExceeded, Unauthenticated, Unavailable
from clawdforge.wire.hermes import HermesHealth


def routers(prefix: str = "") -> list[Router]:
    """`/api/sessions` without a prefix belongs to another dialect, so the list is under the prefix only."""
    found = _make_routers("")
    return [*found, *_make_routers(prefix), sessions.list_routes(prefix)] if prefix else found


def _make_routers(prefix: str) -> list[Router]:
    open_router = Router(OpenHermesRoute, prefix=prefix, tags=["hermes dialect"])
    open_router.get("/health", response_model=HermesHealth)(alive)
    return [
        open_router,
        login.routes(prefix),
        sessions.routes(prefix),
        history.routes(prefix),
        chat.routes(prefix),
        approvals.routes(prefix),
        live.routes(prefix),
        quiet.routes(prefix),
        quiet.open_routes(prefix),
        uploads.routes(prefix),
        unserved.routes(prefix),
    ]


async def alive(request: Request, core: Core, deep: bool = False) -> Response:
    """Whether the server answers. `/healthz` says more. To its apps it also tells how much it is used."""
    # It is asked while things go wrong too: whoever cannot be known now is told what everybody is.
    counted = {"active_streams": core.health.running_turns}
    reply: Json = {"ok": True, "status": "ok", **counted, "uptime_seconds": core.health.uptime_secs}
    try:
        app = (await admit(request, AppRoute.credential, request.scope["route"].path_format)).app
        count = await core.sessions.count(app) if deep else 0
    except LimitExceeded:
        raise
    except (Unauthenticated, Forbidden, Unavailable):
        return json_response(reply)
    seen = {"requests_total": request.state.request_number, "last_request_at": to_float(core.health.now)}
    if not deep:
        return json_response({**reply, "accept_loop": seen})
    checks = {
        "streams_lock": {"status": "ok", **counted},
        "sessions": {"status": "ok", "count": count},
        "projects": {"status": "ok", "count": 0},
        "state_db": {"status": "ok"},
    }
    return json_response({**reply, "accept_loop": seen, "checks": checks})
