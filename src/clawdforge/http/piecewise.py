"""Long replies: made a piece at a time and sent as they are made, or made beside the event loop."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sized
from itertools import chain
from typing import Final

from pydantic import BaseModel
from starlette.responses import Response, StreamingResponse

from clawdforge.core.computing import Computing
from clawdforge.core.long_reads import FEW_ROWS
from clawdforge.http.errors import encode, json_response

WHOLE_BYTES: Final = 256 * 1024
SLICE_BYTES: Final = 64 * 1024

Pause = Callable[[], Awaitable[None]]


async def piecewise(pieces: Iterator[bytes], media_type: str, pause: Pause) -> Response:
    """Between two pieces it is the others' turn, whether the client reads slowly or fast."""
    first: list[bytes] = []
    size = 0
    for piece in pieces:
        first.append(piece)
        size += len(piece)
        if size > WHOLE_BYTES:
            return StreamingResponse(_send(chain(first, pieces), pause), media_type=media_type)
        await pause()
    return Response(b"".join(first), media_type=media_type)


async def long_response(
    computing: Computing, app: str, rows: Sized, make: Callable[[], BaseModel]
) -> Response:
    """A success that is made of rows, beside the event loop where they are many."""
    if len(rows) <= FEW_ROWS:
        return json_response(make())
    body = await computing.run(app, lambda: encode(make()))
    return Response(body, media_type="application/json")


def slices(body: bytes) -> Iterator[bytes]:
    """A long body that is there already."""
    return (body[start : start + SLICE_BYTES] for start in range(0, len(body), SLICE_BYTES))


async def _send(pieces: Iterator[bytes], pause: Pause) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
        await pause()  # sending does not pause as long as the client reads
