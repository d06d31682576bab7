"""uvicorn's protocol behind our door: its connections are counted, timed, and known to their requests."""

import asyncio
from typing import Any, Final, cast
from urllib.parse import unquote

import httptools
from starlette.types import Scope
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from clawdforge.http.connections.connection import KEY, Connection
from clawdforge.http.connections.door import Door, DoorLimits, peer_of
from clawdforge.http.connections.exchange import Exchange
from clawdforge.http.connections.patience import Patience, Phase
from clawdforge.http.connections.tunnel import TunnelEnd
from clawdforge.http.errors import whole_answer
from clawdforge.http.head import KEY as HEAD
from clawdforge.http.head import Head
from clawdforge.wire.errors import ForgeAPIError, HeadersTooLarge, NotHttp, ServerBusy, TooSlow

MAX_HEADER_BYTES: Final = 64 * 1024
MAX_HEADERS: Final = 128
FEW_WAITING: Final = 8
MAX_WAITING: Final = 100
"""Requests that were sent behind one that is not answered yet. Hardly any client sends even one. While there
are few, more is read: else nobody would hear the client hang up."""

RETRY_SECS: Final = 1
FORWARDED: Final = frozenset({b"x-forwarded-for", b"x-forwarded-proto"})


class ForgeProtocol(HttpToolsProtocol):
    """Tells its door what it waits for. What it has to refuse itself is answered like every failure."""

    cycle: Exchange | None  # type: ignore[assignment]  # the last one that has come

    def __init__(self, *, door: Door, behind_proxy: ProxyHeadersMiddleware, **given: Any) -> None:
        """`behind_proxy` is the app as well, for requests that tell of a proxy."""
        super().__init__(**given)
        self._door = door
        self._behind_proxy = behind_proxy
        self._begun: Exchange | None = None  # the last one that is being answered, or has been
        self._header_bytes = 0
        self._now = 0.0  # when what is being parsed came
        self.peer: str | None = None
        self._end: TunnelEnd | None = None  # of the tunnel that it has become
        self._behind: bytes | None = None  # what came after a request to become one, which is not answered

    @property
    def is_known(self) -> bool:
        return self._connection.is_known

    @property
    def is_idle(self) -> bool:
        return self._patience.phase in (Phase.HEADERS, Phase.IDLE) and not self._is_answering

    def is_overdue(self, limits: DoorLimits, now: float) -> bool:
        unsent = self.transport.get_write_buffer_size()
        return self._patience.is_over(limits, now, unsent, is_reading=not self.flow.read_paused)

    def turn_out(self) -> None:
        """Say why, if a request has begun and nothing is being sent."""
        begun = self._end is None and (self._header_bytes > 0 or self._patience.phase is Phase.BODY)
        if begun and not self.transport.is_closing():
            self._refuse(TooSlow())
        else:
            self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self._connection = Connection(transport.get_extra_info("socket"), self)
        self._patience = Patience(self.loop.time())
        self.app_state: dict[str, Any] = {**self.app_state, KEY: self._connection}
        if not self._connection.is_unix:
            self.peer = peer_of(self.client[0] if self.client else "")
        self._has_room = self._door.admit(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - as in asyncio
        self._door.leave(self)
        self._connection.lose()
        self.connections.discard(self)
        if self._begun is not None:  # those behind it never will be
            self._begun.disconnected = not self._begun.response_complete
            self._begun.notice()
        self.pipeline.clear()
        self.flow.resume_writing()
        self.parser = None  # type: ignore[assignment]  # it holds this protocol
        if self._end is not None:
            self._end.lose()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._end is not None:
            self._patience.receive(len(data))
            self._end.take(data)
            return
        if not self._has_room:  # said now: what was sent and not read would take the answer away
            self._refuse(ServerBusy(retry_after=RETRY_SECS))
            return
        if self._behind is not None:
            self._keep_behind(data)
            return
        if self._patience.phase in (Phase.HEADERS, Phase.IDLE):
            self._header_bytes += len(data)
        self._now = self.loop.time()
        self._parse(data)
        if self._patience.phase is Phase.HEADERS and self._header_bytes > MAX_HEADER_BYTES:
            self._refuse(HeadersTooLarge())

    def _parse(self, data: bytes) -> None:
        """As uvicorn does it, which drops what came behind a request for an upgrade."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError as error:
            if not self.transport.is_closing():
                self.send_400_response(str(error))
        except httptools.HttpParserUpgrade as upgrade:
            self._keep_behind(data[upgrade.args[0] :])

    def _keep_behind(self, data: bytes) -> None:
        """Its answer tells whether this is for a tunnel or another request. Only so much is kept."""
        self._behind = (self._behind or b"") + data
        if len(self._behind) > MAX_HEADER_BYTES:
            self.flow.pause_reading()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._patience.enter(Phase.HEADERS, self._now)

    def on_header(self, name: bytes, value: bytes) -> None:
        headers = self.headers
        headers.append((name.lower(), value))
        if len(headers) > MAX_HEADERS:
            raise HeadersTooLarge  # the parser gives up, which ends in `send_400_response`

    def on_headers_complete(self) -> None:
        head = self._read_head()
        last, expected = self.cycle, head.first(b"expect")
        self.cycle = Exchange(
            self,
            cast("Scope", self.scope),
            keep_alive=self.scope["http_version"] != "1.0" and self.parser.should_keep_alive(),
            expects_continue=expected is not None and expected.lower() == b"100-continue",
        )
        app = self.app if head.is_without(FORWARDED) else self._behind_proxy
        if last is None or last.response_complete:
            self._start_asgi_task(self.cycle, app)
        elif len(self.pipeline) < MAX_WAITING:
            self.pipeline.appendleft((self.cycle, app))
            if len(self.pipeline) > FEW_WAITING:
                self.flow.pause_reading()
        else:
            self.transport.close()  # nothing that is said now would be taken for the answer to this one
            raise ServerBusy  # the parser gives up
        self._header_bytes = 0
        self._patience.enter(Phase.BODY, self._now)

    def _read_head(self) -> Head:
        """Into the scope of the request."""
        scope, url = self.scope, httptools.parse_url(self.url)
        scope["method"] = self.parser.get_method().decode("ascii")
        scope["http_version"] = self.parser.get_http_version()
        path = url.path.decode("ascii")
        scope["path"] = unquote(path) if "%" in path else path
        scope["raw_path"] = url.path
        scope["query_string"] = url.query or b""
        head = scope[HEAD] = Head(self.headers)  # type: ignore[typeddict-unknown-key]  # one of ours
        return head

    def _start_asgi_task(self, cycle: Exchange, app: Any) -> None:  # type: ignore[override]
        self._begun = cycle
        self.tasks.add(self.loop.create_task(self._run(cycle, app)))

    async def _run(self, cycle: Exchange, app: Any) -> None:
        """It leaves the list by itself: a callback of its task would take another pass of the loop."""
        try:
            await cycle.run_asgi(app)
        finally:
            self.tasks.discard(asyncio.current_task())

    def on_body(self, body: bytes) -> None:
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.body += body
            if len(cycle.body) > HIGH_WATER_LIMIT:
                self.flow.pause_reading()
            cycle.notice()
        self._patience.receive(len(body))

    def on_message_complete(self) -> None:
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.more_body = False
            cycle.notice()
        done = self._patience.phase is Phase.REST
        self._patience.enter(Phase.IDLE if done else Phase.ANSWER, self._now)

    def on_response_complete(self) -> None:
        """The next request that has come already begins. Where none has, the door waits for one."""
        self.server_state.total_requests += 1
        if not self.transport.is_closing():
            self.flow.resume_reading()
            if self.pipeline:
                self._start_asgi_task(*self.pipeline.pop())  # type: ignore[arg-type]  # one of ours
                return
        if self._patience.phase is Phase.ANSWER:
            self._patience.enter(Phase.IDLE, self.loop.time())
        elif self._patience.phase is Phase.BODY:
            self._patience.enter(Phase.REST, self.loop.time())
        if self._behind is not None:  # there was no upgrade, so this is HTTP still
            behind, self._behind = self._behind, None
            if behind:
                self.data_received(behind)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's words, which are not JSON
        if self.headers is not None and len(self.headers) > MAX_HEADERS:
            self._refuse(HeadersTooLarge())
        else:
            self._refuse(NotHttp())

    def enter(self, end: TunnelEnd) -> None:
        """Become a tunnel in the middle of a request, which has been read and not been answered."""
        self._end = end
        behind, self._behind = self._behind, None
        if behind:
            end.take(behind)
        if self._connection.is_gone:  # while somebody found out whether it may
            end.lose()

    @property
    def is_choked(self) -> bool:
        return bool(self.flow.write_paused)

    def write(self, data: bytes) -> None:
        self.transport.write(data)

    async def drain(self) -> None:
        await self.flow.drain()

    def expect(self, *, more: bool) -> None:
        phase = Phase.BODY if more else Phase.ANSWER
        if phase is not self._patience.phase:
            self._patience.enter(phase, self.loop.time())

    def hold_back(self) -> None:
        self.flow.pause_reading()

    def go_on(self) -> None:
        self.flow.resume_reading()

    def end(self) -> None:
        self.transport.close()

    def abort(self) -> None:
        self.transport.abort()

    @property
    def _is_answering(self) -> bool:
        """Whether a part of an answer is on its way, so that no other can be sent."""
        return self._begun is not None and self._begun.response_started and not self._begun.response_complete

    def _refuse(self, error: ForgeAPIError) -> None:
        if self._is_answering:
            self.transport.abort()
            return
        self.transport.write(whole_answer(error, self.server_state.default_headers))
        self.transport.close()
