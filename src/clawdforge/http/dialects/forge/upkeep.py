"""Forge routes about what a session has used, and about removing it for good."""

from starlette.responses import Response

from clawdforge.core.models.rows import SessionRow
from clawdforge.http.errors import json_response
from clawdforge.http.routers import Router
from clawdforge.http.routing import App, AppRoute, Core
from clawdforge.wire.session import PurgeReply, UsageReply
from clawdforge.wire.turn import Usage


def routes() -> Router:
    router = Router(AppRoute, tags=["sessions"])
    router.get("/sessions/{session_id}/usage", response_model=UsageReply)(usage)
    router.post("/sessions/{session_id}/purge", response_model=PurgeReply)(purge)
    return router


async def usage(core: Core, app: App, session_id: str) -> Response:
    """Tokens and cost: what the agent reported, and beside it what was estimated from the text."""
    state = await core.sessions.get(app, session_id)
    return json_response(_usage(state.row))


async def purge(core: Core, app: App, session_id: str) -> Response:
    """Delete a session with its history, home and workspace. Its id is unknown from then on."""
    await core.sessions.delete(app, session_id)
    return json_response(PurgeReply(session_id=session_id))


def _usage(row: SessionRow) -> UsageReply:
    """The numbers at the top are the reported ones."""
    reported = Usage(
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        cached_tokens=row.cached_tokens,
        total_tokens=row.input_tokens + row.output_tokens + row.cached_tokens,
        cost_usd=row.cost_usd,
    )
    estimated = Usage(
        input_tokens=row.total_input_tokens,
        output_tokens=row.total_output_tokens,
        total_tokens=row.total_input_tokens + row.total_output_tokens,
        cost_usd=row.estimated_cost_usd,
        estimated=True,
    )
    return UsageReply(
        session_id=row.session_id,
        input_tokens=reported.input_tokens,
        output_tokens=reported.output_tokens,
        cached_tokens=reported.cached_tokens,
        total_tokens=reported.total_tokens,
        cost_usd=reported.cost_usd,
        reported=reported,
        estimated=estimated,
        turns=row.turn_count,
    )
