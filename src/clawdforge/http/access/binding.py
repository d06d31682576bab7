"""Which routes an agent may use with the token of its own that is bound to its session."""

from typing import Final

from starlette.requests import Request

from clawdforge.core.models.principal import Principal
from clawdforge.core.services.all import Services
from clawdforge.wire.errors import Forbidden

READS: Final = frozenset(
    {
        "GET /sessions/{session_id}",
        "GET /sessions/{session_id}/events",
        "GET /sessions/{session_id}/messages",
        "GET /sessions/{session_id}/turns",
        "GET /sessions/{session_id}/usage",
    }
)
"""Of its own session and of those that it made."""

ACTS: Final = frozenset(
    {
        "DELETE /sessions/{session_id}",
        "POST /sessions/{session_id}/cancel",
        "POST /sessions/{session_id}/turn",
        "POST /sessions/{session_id}/turns",
        "DELETE /sessions/{session_id}/turns/{turn_index}",
    }
)
"""On those that it made."""

MAKES: Final = frozenset({"POST /sessions"})

CHECKS: Final = frozenset({"POST /mcp"})
"""Routes that name a session where only they can find it, and check it there."""


async def check_binding(request: Request, path: str) -> None:
    """Refuse what a bound token may not do. A route that is not named here is closed to it."""
    principal: Principal = request.scope["state"]["principal"]
    if principal.session_id is None:
        return
    route = f"{request.method} {path}"
    if route in READS | ACTS:
        services: Services = request.app.state.services
        session_id = request.path_params["session_id"]
        await services.sub_sessions.check(principal, session_id, reads=route in READS)
    elif route not in MAKES | CHECKS:
        raise Forbidden(
            "an agent's own token reads its session, and makes, prompts and reads sub-sessions of it; "
            "it opens nothing else"
        )
