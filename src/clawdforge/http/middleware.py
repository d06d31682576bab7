"""What surrounds every request: its id, security headers, the guard, the body limit, the last handler."""

import asyncio
import logging
import secrets
import time
from collections.abc import Collection
from contextlib import ExitStack
from itertools import count
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clawdforge.http.access.guard import Guard
from clawdforge.http.access.share import LEAVING, tell_rate
from clawdforge.http.access_log import log_request
from clawdforge.http.connections.lanes import Lanes
from clawdforge.http.connections.tunnel import UPGRADED
from clawdforge.http.errors import error_response
from clawdforge.http.requests.multipart import FORM_BYTES
from clawdforge.wire.errors import BodyTooLarge, FileTooLarge, ForgeAPIError, InternalError, Stopping

log = logging.getLogger(__name__)

SECURITY_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}
DIALECT_HEADERS: Final = {
    "hermes": {
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "same-origin",
        "Permissions-Policy": "camera=(), microphone=(self), geolocation=(), clipboard-write=(self)",
    }
}
"""What the server that a dialect comes from sends with every reply."""


class Envelope:
    """The outermost layer: every reply has an id, the security headers and a body of ours.

    While the server is stopping, each is the last one on its connection: whoever asks again may come to
    another node then.
    """

    def __init__(self, asgi: ASGIApp, guard: Guard, lanes: Lanes, stopping: asyncio.Event) -> None:
        self._asgi = asgi
        self._guard = guard
        self._stopping = stopping
        self.lanes = lanes
        self._numbers = count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._asgi(scope, receive, send)
            return
        request_id = secrets.token_hex(8)
        leaving = ExitStack()
        known = {"request_id": request_id, "request_number": next(self._numbers), LEAVING: leaving}
        state = {**scope.get("state", {}), **known}
        method, began = scope["method"], time.perf_counter()
        scope = _head_as_get({**scope, "state": state})
        status: int | None = None
        finished = False

        async def send_sealed(message: Message) -> None:
            nonlocal status, finished
            if message["type"] == "http.response.start":
                status = message["status"]
                self._seal(scope, MutableHeaders(scope=message))
            elif message["type"] == "http.response.body":
                finished = not message.get("more_body", False)
            elif message["type"] == UPGRADED:
                status, finished = 101, True
                return
            await send(message)

        try:
            await self._answer(scope, receive, send_sealed)
        except Exception as error:
            failure = _explain(error, request_id, method)
            if status is None:
                await error_response(failure)(scope, receive, send_sealed)
            elif not finished:
                raise  # uvicorn closes the connection, so that the client notices the incomplete reply
        finally:
            leaving.close()
            log_request(scope, method, status, began)

    def _seal(self, scope: Scope, headers: MutableHeaders) -> None:
        state = scope["state"]
        headers["X-Request-Id"] = state["request_id"]
        own = DIALECT_HEADERS.get(state.get("dialect", ""), {})
        for name, value in {**SECURITY_HEADERS, **own}.items():
            headers.setdefault(name, value)
        tell_rate(scope, headers)
        if self._stopping.is_set():
            headers["Connection"] = "close"

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A request is cancelled when the server stops: what it waited for will not happen any more."""
        try:
            if not await self.lanes.enter(scope):
                return
            refusal = self._guard.refusal(scope["headers"], scope["path"])
            answer = self._asgi if refusal is None else error_response(refusal)
            await answer(scope, receive, send)
        except asyncio.CancelledError:
            raise Stopping from None


class BodyLimit:
    """Counts a body while it is read, whatever Content-Length says."""

    def __init__(self, asgi: ASGIApp, limit: int, file_limit: int, forms: Collection[str]) -> None:
        """`forms` are the paths that take files."""
        self._asgi = asgi
        self._forms = forms
        self._limit = limit
        self._file_limit = file_limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._asgi(scope, receive, send)
            return
        form = scope["path"] in self._forms
        limit = self._file_limit + FORM_BYTES if form else self._limit
        too_large = FileTooLarge if form else BodyTooLarge
        declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        seen = 0

        async def receive_counted() -> Message:
            nonlocal seen
            if declared.isdigit() and int(declared) > limit:
                raise too_large
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > limit:
                raise too_large
            return message

        await self._asgi(scope, receive_counted, send)


def _explain(error: Exception, request_id: str, method: str) -> ForgeAPIError:
    if isinstance(error, Stopping):
        return error
    log.error("request %s failed: %s", request_id, method, exc_info=error, extra={"request_id": request_id})
    return InternalError()


def _head_as_get(scope: Scope) -> Scope:
    """Treat HEAD as a GET whose body is not sent, but never as a stream, which would not end."""
    if scope["method"] != "HEAD":
        return scope
    headers = [(name, value) for name, value in scope["headers"] if name != b"accept"]
    return {**scope, "method": "GET", "headers": headers}
