"""hermes routes about approvals: what an agent asks permission for, and the answer."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from starlette.responses import Response

from clawdforge.core.models.rows import PermissionRow
from clawdforge.http.dialects.hermes import frames
from clawdforge.http.dialects.hermes.route import SessionId, router
from clawdforge.http.errors import json_response
from clawdforge.http.routers import Router
from clawdforge.http.routing import App, Core
from clawdforge.wire.errors import SessionNotFound
from clawdforge.wire.hermes import ApprovalReply, ApprovalRespond, PendingApproval
from clawdforge.wire.turn import DecideRequest, Decision

DECISIONS: Final = {
    "once": Decision.ALLOW_ONCE,
    "session": Decision.ALLOW_ALWAYS,
    "always": Decision.ALLOW_ALWAYS,
    "deny": Decision.REJECT,
}


def routes(prefix: str) -> Router:
    found = router(prefix)
    found.get("/api/approval/pending", response_model=PendingApproval)(pending)
    found.post("/api/approval/respond", response_model=ApprovalReply)(respond)
    return found


async def pending(core: Core, app: App, session_id: SessionId) -> Response:
    """The oldest request that waits for an answer, and how many there are; unknown sessions have none."""
    rows: Sequence[PermissionRow] = ()
    with suppress(SessionNotFound):  # a page asks on after its session was deleted elsewhere
        rows = await core.permissions.list(app, session_id, "pending")
    shown = frames.approval_row(rows[0]) if rows else None
    return json_response({"ok": True, "pending": shown, "pending_count": len(rows)})


async def respond(core: Core, app: App, body: ApprovalRespond) -> Response:
    """Answer a request; the first answer wins. Where nothing waits, `resolved` is false."""
    asked = None
    with suppress(SessionNotFound):
        rows = await core.permissions.list(app, body.session_id, "pending")
        asked = body.approval_id or (rows[0].permission_id if rows else None)
        if asked is not None:
            request = DecideRequest(decision=DECISIONS[body.choice])
            await core.permissions.decide(app, body.session_id, asked, request)
    return json_response({"ok": True, "choice": body.choice, "resolved": asked is not None})
