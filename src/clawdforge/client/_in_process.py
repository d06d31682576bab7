"""A client of a server in this very process: calls reach it without a network, streams piece by piece.

The server treats them like any others: they are authenticated, counted, and take their turns.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any, Final

import httpx2

from clawdforge.client._async.forge import AsyncForge

Message = MutableMapping[str, Any]
Asgi = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]

HANG_UP_SECS: Final = 1.0
"""So long a server may take to notice that its answer is no longer read."""


def connect_in_process(asgi: Asgi, url: str, token: str, reconnect_secs: float) -> AsyncForge:
    """`url` is where the server can be reached from outside: it serves no other host."""
    pool = httpx2.AsyncClient(transport=InProcess(asgi), trust_env=False)
    return AsyncForge(url, token, reconnect_secs=reconnect_secs, http_client=pool)


class InProcess(httpx2.AsyncBaseTransport):
    def __init__(self, asgi: Asgi) -> None:
        self._asgi = asgi

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": request.method,
            "scheme": request.url.scheme,
            "path": request.url.path,
            "raw_path": request.url.raw_path.partition(b"?")[0],
            "query_string": request.url.query,
            "root_path": "",
            "headers": [(name.lower(), value) for name, value in request.headers.raw],
            "server": (request.url.host, request.url.port),
            "client": None,
            "state": {},
        }
        patience = request.extensions.get("timeout", {}).get("read")
        answer = _Answer(self._asgi, scope, await request.aread(), patience)
        status, headers = await answer.begin()
        return httpx2.Response(status, headers=headers, stream=answer, request=request)


class _Answer(httpx2.AsyncByteStream):
    """One exchange. The server is at most one piece ahead of its reader."""

    def __init__(self, asgi: Asgi, scope: Message, body: bytes, patience: float | None) -> None:
        self._body: bytes | None = body
        self._patience = patience
        self._pieces: asyncio.Queue[Message | None] = asyncio.Queue(1)
        self._hung_up = asyncio.Event()
        self._task = asyncio.create_task(self._run(asgi, scope), name=f"in process {scope['path']}")
        self._task.add_done_callback(lambda task: task.cancelled() or task.exception())  # it is logged there

    async def begin(self) -> tuple[int, list[tuple[bytes, bytes]]]:
        try:
            start = await self._next()
        except BaseException:
            await self.aclose()
            raise
        if start is None:
            raise httpx2.RemoteProtocolError("the server did not answer")
        return start["status"], start["headers"]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (piece := await self._next()) is not None:
            if piece.get("body"):
                yield piece["body"]
            if not piece.get("more_body"):
                return
        raise httpx2.RemoteProtocolError("the answer is not complete")

    async def aclose(self) -> None:
        self._hung_up.set()
        while not self._pieces.empty():
            self._pieces.get_nowait()
        await asyncio.wait([self._task], timeout=HANG_UP_SECS)
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _next(self) -> Message | None:
        try:
            async with asyncio.timeout(self._patience):
                return await self._pieces.get()
        except TimeoutError:
            raise httpx2.ReadTimeout("the server took too long") from None

    async def _run(self, asgi: Asgi, scope: Message) -> None:
        try:
            await asgi(scope, self._receive, self._send)
        finally:
            if not self._hung_up.is_set():
                await self._pieces.put(None)

    async def _receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._hung_up.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if not self._hung_up.is_set():
            await self._pieces.put(message)
