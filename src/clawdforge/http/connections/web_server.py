"""uvicorn as we run it: behind our door, with neither its signal handlers nor its log."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import Final

import uvicorn
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from clawdforge.http.connections.door import Door
from clawdforge.http.connections.porch import Porch
from clawdforge.http.connections.protocol import ForgeProtocol
from clawdforge.http.middleware import Envelope

FAREWELL_SECS: Final = 2


class WebServer(uvicorn.Server):
    """Stopping is ours to order. `backlog` is how many connections the kernel may keep waiting."""

    def __init__(self, asgi: Envelope, door: Door, backlog: int) -> None:
        self._backlog = backlog
        self._door = door
        self._lanes = asgi.lanes
        super().__init__(
            uvicorn.Config(
                asgi,
                http=ForgeProtocol,
                ws="none",  # a connection that became another protocol would never leave the door
                proxy_headers=False,  # for the few requests that have any
                log_config=None,
                access_log=False,
                lifespan="off",
                server_header=False,
                timeout_graceful_shutdown=FAREWELL_SECS,
            )
        )
        self._behind_proxy = ProxyHeadersMiddleware(asgi, self.config.forwarded_allow_ips)  # type: ignore[arg-type]

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Before each socket stands a porch of ours instead of a server of the event loop's."""
        await super().startup([])
        for listener in sockets or ():
            listener.setblocking(False)
            listener.listen(self._backlog)
            porch = Porch(listener, self._door.limits, self._lanes, self._make_protocol)
            self.servers.append(porch)  # type: ignore[arg-type]  # they are only closed

    def _make_protocol(self) -> asyncio.Protocol:
        """As uvicorn does it for servers of its own."""
        return ForgeProtocol(
            door=self._door,
            behind_proxy=self._behind_proxy,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )
