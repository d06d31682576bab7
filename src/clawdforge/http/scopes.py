"""Which scope each route of an app needs: the whole table in one place."""

from typing import Final

from clawdforge.http.dialects.hermes.quiet import QUIET
from clawdforge.http.dialects.hermes.unserved import UNSERVED
from clawdforge.http.routing import AppRoute, OpenRoute
from clawdforge.wire.scopes import Scope

READ: Final = (
    "GET /agents",
    "GET /budgets",
    "GET /events",
    "GET /files/{file_token}",
    "GET /limits",
    "GET /permissions",
    "GET /personas",
    "GET /personas/{name}",
    "POST /login/codes",  # it opens no more than the token that asks
    "POST /schedules/preview",  # nothing is made
    "GET /schedules",
    "GET /schedules/{schedule_id}",
    "GET /schedules/{schedule_id}/history",
    "GET /search",
    "GET /sessions",
    "GET /sessions/{session_id}",
    "GET /sessions/{session_id}/events",
    "GET /sessions/{session_id}/export",
    "GET /sessions/{session_id}/messages",
    "GET /sessions/{session_id}/permissions",
    "GET /sessions/{session_id}/tree",
    "GET /sessions/{session_id}/shares",
    "GET /sessions/{session_id}/turns",
    "GET /sessions/{session_id}/turns/{turn_index}/changes",
    "GET /sessions/{session_id}/usage",
    "GET /usage",
    "GET /api/approval/pending",
    "GET /api/chat/stream",
    "GET /api/chat/stream/status",
    "GET /api/session",
    "GET /api/session/export",
    "GET /api/session/status",
    "GET /api/session/stream",
    "GET /api/session/usage",
    "GET /api/sessions",
    "GET /api/sessions/events",
    "GET /api/sessions/search",
    "GET /api/sessions/{session_id}",
    "GET /api/sessions/{session_id}/stream",
    "GET /sessions/{session_id}/ui/{chat_id}/stream",
    "GET /v1/models",
    "POST /mcp",  # each of its tools needs its own as well
    *QUIET,  # nothing is kept, and nothing told but of a session
    *UNSERVED,  # each only says why it is not served
)
PROMPT: Final = (
    "GET /acp",  # whatever is asked through it needs its own as well
    "POST /files",
    "DELETE /files/{file_token}",
    "POST /run",
    "POST /schedules",
    "PATCH /schedules/{schedule_id}",
    "DELETE /schedules/{schedule_id}",
    "POST /schedules/{schedule_id}/run",
    "POST /sessions",
    "POST /sessions/import",
    "PATCH /sessions/{session_id}",
    "DELETE /sessions/{session_id}",
    "DELETE /sessions/{session_id}/agent",
    "POST /sessions/{session_id}/cancel",
    "POST /sessions/{session_id}/clear",
    "POST /sessions/{session_id}/compact",
    "POST /sessions/{session_id}/fork",
    "POST /sessions/{session_id}/redo",
    "POST /sessions/{session_id}/reopen",
    "POST /sessions/{session_id}/retry",
    "POST /sessions/{session_id}/turn",
    "POST /sessions/{session_id}/turns",
    "PATCH /sessions/{session_id}/turns/{turn_index}",
    "DELETE /sessions/{session_id}/turns/{turn_index}",
    "POST /sessions/{session_id}/undo",
    "GET /api/chat/cancel",
    "POST /api/chat/start",
    "POST /api/chat/steer",
    "POST /api/session/archive",
    "POST /api/session/branch",
    "POST /api/session/clear",
    "POST /api/session/duplicate",
    "POST /api/session/import",
    "POST /api/session/new",
    "POST /api/session/pin",
    "POST /api/session/rename",
    "POST /api/session/retry",
    "POST /api/session/truncate",
    "POST /api/session/undo",
    "POST /api/session/update",
    "POST /api/upload",
    "POST /api/sessions",
    "POST /api/sessions/{session_id}/end",
    "POST /api/sessions/{session_id}/messages",
    "POST /sessions/{session_id}/ag-ui",
    "POST /sessions/{session_id}/ui",
    "POST /v1/chat/completions",
    "POST /v1/responses",
)
DECIDE: Final = (
    "POST /sessions/{session_id}/permissions/{permission_id}",
    "POST /api/approval/respond",
)
ADMIN: Final = (
    "PUT /personas/{name}",
    "DELETE /personas/{name}",
    "POST /sessions/{session_id}/purge",
    "POST /api/session/delete",
    "POST /sessions/{session_id}/shares",
    "DELETE /sessions/{session_id}/shares/{share_id}",
    "PUT /budgets",
    "DELETE /budgets/{budget_id}",
    "GET /webhooks",  # a URL may be a secret of its receiver's
    "POST /webhooks",
    "PATCH /webhooks/{endpoint_id}",
    "DELETE /webhooks/{endpoint_id}",
    "POST /webhooks/{endpoint_id}/rotate",
    "GET /webhooks/{endpoint_id}/deliveries",
    "POST /webhooks/{endpoint_id}/deliveries/{delivery_id}/resend",
    "GET /tokens",
    "POST /tokens",
    "DELETE /tokens/{token_id}",
)
SCOPES: Final = {
    **dict.fromkeys(READ, Scope.READ),
    **dict.fromkeys(PROMPT, Scope.PROMPT),
    **dict.fromkeys(DECIDE, Scope.DECIDE),
    **dict.fromkeys(ADMIN, Scope.ADMIN),
}


def find_scope(route: OpenRoute, method: str, prefix: str) -> Scope | None:
    """What a token needs for this route; None where the route does not belong to apps.

    Raises ValueError for an app's route that is not in the table. A dialect's prefix changes nothing.
    """
    if not isinstance(route, AppRoute):
        return None
    path = route.path_format
    found = SCOPES.get(f"{method} {path}") or SCOPES.get(f"{method} {path.removeprefix(prefix)}")
    if found is None:
        raise ValueError(f"{method} {path} has no scope; name it in http/scopes.py")
    return found
