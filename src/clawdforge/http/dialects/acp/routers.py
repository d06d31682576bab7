"""The route of editors: a WebSocket with one message of JSON-RPC in each text frame."""

from typing import Annotated, Final

from starlette.requests import Request
from starlette.responses import Response

from clawdforge.core.pacing.pace import Pace
from clawdforge.http.connections.connection import find_tunnel, is_from_agent
from clawdforge.http.connections.websocket import WebSocket, write_opening
from clawdforge.http.editors import EditorCall, EditorLine
from clawdforge.http.requests.marks import Query
from clawdforge.http.routers import Router
from clawdforge.http.routing import AppRoute, Caller, Core
from clawdforge.http.settings import HttpSettings
from clawdforge.wire.errors import Forbidden, InvalidRequest, Unauthenticated
from clawdforge.wire.session import PermissionMode

MAX_NAME: Final = 200


class AcpRoute(AppRoute):
    """A route whose callers speak the Agent Client Protocol."""

    dialect = "acp"


def routers() -> list[Router]:
    router = Router(AcpRoute, tags=["acp"])
    router.get("/acp", status_code=101, response_class=Response)(open_line)
    return [router]


Name = Annotated[str | None, Query(min_length=1, max_length=MAX_NAME)]


async def open_line(
    request: Request,
    core: Core,
    caller: Caller,
    agent: Name = None,
    persona: Name = None,
    model: Name = None,
    permission_mode: PermissionMode | None = None,
    own_folders: bool = False,
) -> Response:
    """A WebSocket for an editor (Agent Client Protocol); parameters say what new sessions are made with."""
    settings: HttpSettings = request.app.state.settings
    _, _, token = request.headers.get("authorization", "").partition(" ")
    if not token:
        raise Unauthenticated("send an app's token in the header Authorization; a login does not open this")
    if await is_from_agent(request):
        raise Forbidden("an agent of this server leads other sessions with its MCP tools, not as an editor")
    pace = Pace(core.loop_turns, core.computing).of(caller.app)
    line = WebSocket(
        write_opening(request),
        request.app.state.bodies,
        pace,
        settings.max_body_bytes,
        settings.heartbeat_secs,
    )
    tunnel = find_tunnel(request)
    if tunnel is None or settings.serve_editor is None:
        raise InvalidRequest("connect to the port of this server; there is no WebSocket within another call")
    wishes = {
        "agent": agent,
        "persona": persona,
        "model": model,
        "permission_mode": permission_mode or PermissionMode.ASK,
    }
    call = EditorCall(
        line=line,
        pace=pace,
        asgi=request.app.state.front,
        token=token.strip(),
        wishes={name: value for name, value in wishes.items() if value is not None},
        own_folders=own_folders,
    )
    return EditorLine(request, tunnel, call, settings.serve_editor)
