"""uvicorn as we run it: behind our door, with neither its signal handlers nor its log."""

import contextlib
import socket
from collections.abc import Iterator
from functools import partial
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from clawdforge.http.door import Door
from clawdforge.http.protocol import ForgeProtocol

ACCEPTS_AT_ONCE: Final = 8
"""The event loop takes so many connections in a row, and then serves those that it has. When descriptors run
out it fails, and tells the log of it, as often in a row."""

FAREWELL_SECS: Final = 2


class WebServer(uvicorn.Server):
    """Stopping is ours to order. `backlog` is how many connections the kernel may keep waiting."""

    def __init__(self, asgi: ASGIApp, door: Door, backlog: int) -> None:
        self._backlog = backlog
        super().__init__(
            uvicorn.Config(
                asgi,
                http=partial(ForgeProtocol, door=door),  # type: ignore[arg-type]  # it only has to make one
                ws="none",  # a connection that became another protocol would never leave the door
                backlog=ACCEPTS_AT_ONCE,
                timeout_keep_alive=door.limits.idle_secs,  # type: ignore[arg-type]  # a time for the event loop
                log_config=None,
                access_log=False,
                lifespan="off",
                server_header=False,
                timeout_graceful_shutdown=FAREWELL_SECS,
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(self._backlog)
