"""Event streams over HTTP: ready bytes, heartbeats, and every reason why a stream ends."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import suppress

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from clawdforge.core.models.principal import Principal
from clawdforge.core.models.stretches import Stretch
from clawdforge.core.rules.turns import SubmittedTurn
from clawdforge.core.services.all import Services
from clawdforge.http.connections.waiting import closing, wait_disconnected, wait_first
from clawdforge.http.settings import HttpSettings
from clawdforge.wire.errors import SessionNotFound
from clawdforge.wire.event import EventType
from clawdforge.wire.event_forms import Form
from clawdforge.wire.sse import HEARTBEAT, begin_frame, encode_numbered

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


def make_frames(stretch: Stretch, form: Form) -> bytes:
    """For all readers of a stretch of the log: most of them want the same bytes."""
    events = stretch.events
    return encode_numbered(
        [event.seq for event in events], [event.type for event in events], stretch.data(form)
    )


def pieces(stretches: Sequence[Stretch], form: Form) -> Iterable[bytes]:
    """One send for many events, but not for all: a client that does not read holds one in memory.

    The data of a large event is sent in slices of the bytes that all its readers share.
    """
    if any(stretch.is_large for stretch in stretches):
        return _slices(stretches, form)
    return list(_join([stretch.once(make_frames, form) for stretch in stretches]))


def _slices(stretches: Sequence[Stretch], form: Form) -> Iterator[bytes]:
    waiting: list[bytes] = []
    for stretch in stretches:
        if not stretch.is_large:
            waiting.append(stretch.once(make_frames, form))
            continue
        (event,) = stretch.events
        yield from _join([*waiting, begin_frame(event=event.type, id=str(event.seq))])
        waiting.clear()
        yield from event.slices(form, PIECE_BYTES)
        yield FRAME_END
    yield from _join(waiting)


def _join(parts: Sequence[bytes]) -> Iterator[bytes]:
    begin = size = 0
    for place, part in enumerate(parts):
        if place > begin and size + len(part) > PIECE_BYTES:
            yield b"".join(parts[begin:place])
            begin, size = place, 0
        size += len(part)
    if begin < len(parts):
        yield b"".join(parts[begin:])


def find_start(submitted: SubmittedTurn) -> int:
    """The cursor just before the first event of a turn that is to be streamed."""
    if not submitted.replayed:
        return submitted.head - 1
    known = submitted.turn.first_seq or submitted.turn.last_seq
    return submitted.head if known is None else known - 1


async def session_frames(batches: AsyncIterator[list[Stretch]], form: Form) -> AsyncIterator[bytes]:
    async with closing(batches):
        async for batch in batches:
            found = pieces(batch, form)
            del batch  # a client that does not read holds what is sent to it, and not what that was made of
            for piece in found:
                yield piece


async def turn_frames(
    batches: AsyncIterator[list[Stretch]], turn_index: int, form: Form
) -> AsyncIterator[bytes]:
    """The events of one turn, up to the one that ends it."""
    async with closing(batches):
        async for batch in batches:
            mine = [part for stretch in batch if (part := stretch.of_turn(turn_index)) is not None]
            found, has_ended = pieces(mine, form), any(EventType.TURN_ENDED in part.types for part in mine)
            del batch, mine
            for piece in found:
                yield piece
            if has_ended:
                return
