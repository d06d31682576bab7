"""One request on a connection and its answer: what comes of its body, what goes out, and how it is framed.

uvicorn's own makes an event for each request, looks at each header by itself, and hands the head of an answer
and its body over one after the other: each is a system call that wakes the client up.
"""

import asyncio
from typing import Any, Final, Protocol

from starlette.types import Message, Scope
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import (
    HEADER_RE,
    HEADER_VALUE_RE,
    STATUS_LINE,
    RequestResponseCycle,
)

LARGE_BYTES: Final = 1 << 16
"""More than this is not copied behind a head."""

START: Final = "http.response.start"
BODY: Final = "http.response.body"
BODILESS: Final = frozenset({204, 304})


class Host(Protocol):
    """The connection."""

    transport: asyncio.Transport
    flow: FlowControl
    loop: asyncio.AbstractEventLoop
    logger: Any
    server_state: Any

    def on_response_complete(self) -> None: ...


class Exchange(RequestResponseCycle):
    """Belongs to one connection. uvicorn runs it, ends it, and knows by it how far it has come."""

    def __init__(self, host: Host, scope: Scope, *, keep_alive: bool, expects_continue: bool) -> None:
        self.scope = scope  # type: ignore[assignment]  # the same in Starlette's words
        self.flow, self.logger = host.flow, host.logger
        self.on_response = host.on_response_complete
        self.disconnected = self.response_started = self.response_complete = False
        self.keep_alive = keep_alive
        self.waiting_for_100_continue = expects_continue
        self.body = bytearray()
        self.more_body = True
        self._host, self._wire = host, host.transport
        self._has_news = False
        self._listener: asyncio.Event | None = None
        self._head: bytes | None = None
        self._left: int | None = 0  # of a body whose length was told; None if it goes out in chunks
        self._is_old = scope.get("http_version") == "1.0"  # the end of the connection ends a body

    @property
    def transport(self) -> "Exchange":  # type: ignore[override]  # as far as uvicorn uses it
        """What uvicorn closes when an answer breaks off: its head goes out before."""
        return self

    def close(self) -> None:
        self._flush()
        self._wire.close()

    def notice(self) -> None:
        """More of the body has come, or all of it, or the client has gone."""
        self._has_news = True
        if self._listener is not None:
            self._listener.set()

    async def receive(self) -> Any:
        if self.waiting_for_100_continue and not self._wire.is_closing():
            self._wire.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.waiting_for_100_continue = False
        if not self.disconnected and not self.response_complete:
            if self.flow.read_paused:
                self.flow.resume_reading()
            if not self._has_news:
                await self._listen()
            self._has_news = False
        if self.disconnected or self.response_complete:
            return {"type": "http.disconnect"}
        body, self.body = bytes(self.body), bytearray()
        return {"type": "http.request", "body": body, "more_body": self.more_body}

    async def send(self, message: Any) -> None:
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        kind = message["type"]
        if kind == START and not self.response_started:
            self._begin(message)
        elif kind == BODY and self.response_started and not self.response_complete:
            self._go_on(message)
        else:
            raise RuntimeError(f"an answer cannot go on with {kind}")

    async def _listen(self) -> None:
        if self._listener is None:
            self._listener = asyncio.Event()
        self._listener.clear()
        await self._listener.wait()

    def _begin(self, message: Message) -> None:
        self.response_started, self.waiting_for_100_continue = True, False
        headers = [*self._host.server_state.default_headers, *message["headers"]]
        _check(headers)
        lines = [STATUS_LINE[message["status"]]]
        length: int | None = None
        is_last = is_chunked = False
        for name, value in headers:
            lines += (name, b": ", value, b"\r\n")
            if name == b"content-length":
                length = int(value)
            elif name == b"transfer-encoding":
                is_chunked = value.lower() == b"chunked"
            elif name == b"connection":
                is_last = is_last or b"close" in [word.strip() for word in value.lower().split(b",")]
        if is_last:
            self.keep_alive = False
        elif not self.keep_alive:
            lines.append(b"connection: close\r\n")
        self._left = None if is_chunked else length
        if self.scope["method"] == "HEAD" or (self._left is None and message["status"] in BODILESS):
            self._left = 0
        elif self._left is None and not is_chunked and not self._is_old:
            lines.append(b"transfer-encoding: chunked\r\n")
        lines.append(b"\r\n")
        self._head = b"".join(lines)
        if self._left is None:
            self._host.loop.call_soon(self._flush)  # a stream may have nothing to say for a long time

    def _go_on(self, message: Message) -> None:
        body, is_last = message.get("body", b""), not message.get("more_body", False)
        if self.scope["method"] == "HEAD":
            self._flush()
        elif self._left is None and self._is_old:
            self._write(body)
        elif self._left is None:
            self._write(b"".join((_chunk(body), b"0\r\n\r\n" if is_last else b"")))
        elif len(body) > self._left:
            raise RuntimeError("an answer is longer than it was to be")
        else:
            self._left -= len(body)
            self._write(body)
        if is_last:
            self._end()

    def _end(self) -> None:
        if self._left:
            raise RuntimeError("an answer is shorter than it was to be")
        self.response_complete = True
        if self._listener is not None:
            self._listener.set()
        if not self.keep_alive:
            self._wire.close()
        self.on_response()

    def _write(self, data: bytes) -> None:
        head, self._head = self._head, None
        if head is None:
            self._wire.write(data)
        elif len(data) > LARGE_BYTES:
            self._wire.write(head)
            self._wire.write(data)
        else:
            self._wire.write(head + data)

    def _flush(self) -> None:
        if self._head is not None:
            self._write(b"")


def _check(headers: list[tuple[bytes, bytes]]) -> None:
    """Refuse what would end a header or begin another one."""
    if HEADER_RE.search(b"".join([name for name, _ in headers])):
        raise RuntimeError("the name of a header has a character that it must not have")
    if HEADER_VALUE_RE.search(b"".join([value for _, value in headers])):
        raise RuntimeError("a header has a character that it must not have")


def _chunk(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(body), body) if body else b""
