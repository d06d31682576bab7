"""What surrounds every request: its id, its turn, security headers, the guard, the last handler."""

import asyncio
import logging
import secrets
import time
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, Final, TypeAlias

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clawdforge.core.services.shares import Rate
from clawdforge.http.access.guard import Guard
from clawdforge.http.access.share import RATE, RateTold
from clawdforge.http.access_log import STATUS, log_request
from clawdforge.http.connections.lanes import Lanes
from clawdforge.http.connections.tunnel import UPGRADED
from clawdforge.http.errors import error_response
from clawdforge.http.head import KEY as HEAD
from clawdforge.http.head import Head, head_of
from clawdforge.http.leaving import KEY as LEAVING
from clawdforge.http.leaving import Leaving
from clawdforge.wire.errors import ForgeAPIError, InternalError, Stopping

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

SEALED: Final = frozenset(name.lower().encode() for name in (*SECURITY_HEADERS, *DIALECT_HEADERS["hermes"]))
ID_BYTES: Final = 8
IDS_AT_ONCE: Final = 64
Headers: TypeAlias = list[tuple[bytes, bytes]]


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
        self._ids = make_ids()
        self._rates = RateTold()
        self._seals = {name: _seal({**SECURITY_HEADERS, **own}) for name, own in DIALECT_HEADERS.items()}
        self._seal = _seal(SECURITY_HEADERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._asgi(scope, receive, send)
            return
        leaving = Leaving()
        request_id = next(self._ids)
        known = {"request_id": request_id, "request_number": next(self._numbers)}
        state = {**scope.get("state", {}), **known, LEAVING: leaving, STATUS: None}
        method, began = scope["method"], time.perf_counter()
        scope = _head_as_get({**scope, "state": state})
        finished = False

        async def send_sealed(message: Message) -> None:
            nonlocal finished
            kind = message["type"]
            if kind == "http.response.start":
                state[STATUS] = message["status"]
                message = {**message, "headers": self._seal_all(state, message["headers"])}
            elif kind == "http.response.body":
                finished = not message.get("more_body", False)
            elif kind == UPGRADED:
                state[STATUS], finished = 101, True
                return
            await send(message)

        try:
            await self._answer(scope, receive, send_sealed)
        except Exception as error:
            failure = _explain(error, request_id, method)
            if state[STATUS] is None:
                await error_response(failure)(scope, receive, send_sealed)
            elif not finished:
                raise  # uvicorn closes the connection, so that the client notices the incomplete reply
        finally:
            leaving.close()
            log_request(scope, method, began)

    def _seal_all(self, state: dict[str, Any], headers: Headers) -> Headers:
        """What stands in every answer, unless the answer says otherwise."""
        said = dict(headers)
        seal = self._seals.get(state.get("dialect", ""), self._seal)
        sealed = [*headers, (b"x-request-id", state["request_id"].encode())]
        sealed += seal if said.keys().isdisjoint(SEALED) else [one for one in seal if one[0] not in said]
        rate: Rate | None = state.get(RATE)
        if rate is not None:
            sealed += self._rates.tell(rate)
        if self._stopping.is_set():
            sealed.append((b"connection", b"close"))
        return sealed

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A request is cancelled when the server stops: what it waited for will not happen any more."""
        try:
            if not await self.lanes.enter(scope):
                return
            refusal = self._guard.refusal(head_of(scope), scope["path"])
            answer = self._asgi if refusal is None else error_response(refusal)
            await answer(scope, receive, send)
        except asyncio.CancelledError:
            raise Stopping from None


def make_ids() -> Iterator[str]:
    """Of requests: nobody can guess one. The kernel is asked for many at once."""
    while True:
        some = secrets.token_hex(ID_BYTES * IDS_AT_ONCE)
        yield from (some[start : start + 2 * ID_BYTES] for start in range(0, len(some), 2 * ID_BYTES))


def _seal(headers: Mapping[str, str]) -> Headers:
    return [(name.lower().encode(), value.encode()) for name, value in headers.items()]


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
    return {**scope, "method": "GET", "headers": headers, HEAD: Head(headers)}
