"""Event streams over HTTP: ready bytes, heartbeats, and every reason why a stream ends."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from clawdforge.core.models.events import StoredEvent
from clawdforge.core.models.principal import Principal
from clawdforge.core.rules.turns import SubmittedTurn
from clawdforge.core.services.all import Services
from clawdforge.http.connections.waiting import closing, wait_disconnected, wait_first
from clawdforge.http.settings import HttpSettings
from clawdforge.wire.errors import SessionNotFound
from clawdforge.wire.event import EventType
from clawdforge.wire.event_forms import Form
from clawdforge.wire.json_bounds import LARGE_BYTES
from clawdforge.wire.sse import HEARTBEAT, begin_frame, encode

FAREWELL_SECS = 1.0
MIN_WAIT_SECS = 0.05
FRAME_END = b"\n\n"
PIECE_BYTES = 1 << 16


class EventStream(Response):
    """Sends frames until they end, the client hangs up, the server stops, or the token is no longer good.

    A client that does not read holds up its own frames only: `send` waits for it, until the door has had
    enough. It can come back with the id of its last event.
    """

    media_type = "text/event-stream"

    def __init__(self, request: Request, frames: AsyncIterator[bytes]) -> None:
        super().__init__(media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._frames = frames
        self._services: Services = request.app.state.services
        self._settings: HttpSettings = request.app.state.settings
        self._principal: Principal = request.state.principal
        self._sent = 0.0
        self._in_frame = False

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        headers = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        await send(headers)
        access = self._services.access
        with access.watch(self._principal) as revoked:
            left = await access.seconds_left(self._principal)
            await wait_first(
                self._pump(send),
                self._beat(send),
                wait_disconnected(receive),
                self._settings.stopping.wait(),
                revoked.wait(),
                *([] if left is None else [asyncio.sleep(max(0.0, left))]),
            )
        await wait_first(
            send({"type": "http.response.body", "body": b"", "more_body": False}),
            asyncio.sleep(FAREWELL_SECS),
        )

    async def _pump(self, send: Send) -> None:
        clock = asyncio.get_running_loop().time
        async with closing(self._frames) as frames:
            with suppress(SessionNotFound):  # it was deleted while it was followed
                async for piece in frames:
                    # Neither side need wait, and there may be hundreds: others must have their turn.
                    await self._services.loop_turns.enter(self._principal.app)
                    self._sent = clock()
                    self._in_frame = not piece.endswith(FRAME_END)
                    message = {"type": "http.response.body", "body": piece, "more_body": True}
                    await send(message)

    async def _beat(self, send: Send) -> None:
        clock = asyncio.get_running_loop().time
        self._sent = clock()
        while True:
            idle = clock() - self._sent
            if idle < self._settings.heartbeat_secs or self._in_frame:
                await asyncio.sleep(max(self._settings.heartbeat_secs - idle, MIN_WAIT_SECS))
            else:
                await send({"type": "http.response.body", "body": HEARTBEAT, "more_body": True})
                self._sent = clock()


def frame(event: StoredEvent, form: Form) -> bytes:
    return encode(event.in_form(form), event=event.type, id=str(event.seq))


def pieces(batch: list[StoredEvent], form: Form) -> Iterator[bytes]:
    """One send for many events, but not for all: a client that does not read holds one in memory.

    The data of a large event is sent in slices of the bytes that all its readers share.
    """
    waiting: list[bytes] = []
    size = 0
    for event in batch:
        if len(event.data) > LARGE_BYTES:
            yield b"".join(waiting) + begin_frame(event=event.type, id=str(event.seq))
            waiting, size = [], 0
            yield from event.slices(form, PIECE_BYTES)
            yield FRAME_END
            continue
        waiting.append(frame(event, form))
        size += len(waiting[-1])
        if size >= PIECE_BYTES:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)


def find_start(submitted: SubmittedTurn) -> int:
    """The cursor just before the first event of a turn that is to be streamed."""
    if not submitted.replayed:
        return submitted.head - 1
    known = submitted.turn.first_seq or submitted.turn.last_seq
    return submitted.head if known is None else known - 1


async def session_frames(batches: AsyncIterator[list[StoredEvent]], form: Form) -> AsyncIterator[bytes]:
    async with closing(batches):
        async for batch in batches:
            for piece in pieces(batch, form):
                yield piece


async def turn_frames(
    batches: AsyncIterator[list[StoredEvent]], turn_index: int, form: Form
) -> AsyncIterator[bytes]:
    """The events of one turn, up to the one that ends it."""
    async with closing(batches):
        async for batch in batches:
            mine = [event for event in batch if event.turn == turn_index]
            for piece in pieces(mine, form):
                yield piece
            if any(event.type == EventType.TURN_ENDED for event in mine):
                return
