"""An editor's connection from its first frame to its last: why it ends, and who serves it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from websockets.frames import CloseCode

from clawdforge.core.models.principal import Principal
from clawdforge.core.pacing.pace import AppPace
from clawdforge.core.services.all import Services
from clawdforge.http.connections.tunnel import UPGRADED, Tunnel
from clawdforge.http.connections.waiting import wait_first
from clawdforge.http.connections.websocket import WebSocket


@dataclass(frozen=True, slots=True, kw_only=True)
class EditorCall:
    """What whoever serves an editor needs: the line to it, and this server as its token sees it."""

    line: WebSocket
    pace: AppPace
    asgi: ASGIApp
    token: str
    wishes: Mapping[str, Any]
    """What new sessions are made with."""
    own_folders: bool


ServeEditor = Callable[[EditorCall], Awaitable[None]]


class EditorLine(Response):
    """Answers by becoming a WebSocket, and has been sent when that is closed.

    It ends as event streams do: when the editor hangs up or is silent, the server stops, or the token is no
    longer good. Whatever runs goes on.
    """

    def __init__(self, request: Request, tunnel: Tunnel, call: EditorCall, serve: ServeEditor) -> None:
        super().__init__(status_code=101)
        self._tunnel = tunnel
        self._call = call
        self._serve = serve
        self._services: Services = request.app.state.services
        self._stopping: asyncio.Event = request.app.state.settings.stopping
        self._principal: Principal = request.state.principal
        self._name: str = request.state.request_id

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        line, access = self._call.line, self._services.access
        why = CloseCode.GOING_AWAY, "nothing was heard of you"
        line.open(self._tunnel, {"Acp-Connection-Id": self._name, "X-Request-Id": self._name})
        await send({"type": UPGRADED})
        try:
            with access.watch(self._principal) as revoked:
                left = await access.seconds_left(self._principal)
                await wait_first(
                    self._serve(self._call),
                    line.keep_alive(),
                    self._stopping.wait(),
                    revoked.wait(),
                    *([] if left is None else [asyncio.sleep(max(0.0, left))]),
                )
                if self._stopping.is_set():
                    why = CloseCode.SERVICE_RESTART, "the server stops; connect again and load your sessions"
                elif revoked.is_set() or (
                    left is not None and await access.seconds_left(self._principal) == 0
                ):
                    why = CloseCode.POLICY_VIOLATION, "the token is no longer good"
        finally:
            await line.close(*why)
