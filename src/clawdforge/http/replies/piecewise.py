"""Replies that are made a piece at a time: short ones are sent whole, long ones as they are made."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from itertools import chain
from typing import Final, TypeVar

from starlette.responses import Response, StreamingResponse

WHOLE_BYTES: Final = 256 * 1024
SLICE_BYTES: Final = 64 * 1024
SHAPED_AT_ONCE: Final = 100

Pause = Callable[[], Awaitable[None]]
Row = TypeVar("Row")
Shape = TypeVar("Shape")


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


async def shape(pause: Pause, rows: Sequence[Row], make: Callable[[Row], Shape]) -> list[Shape]:
    """What a reply shows of very many rows, made a few at a time."""
    made: list[Shape] = []
    for start in range(0, len(rows), SHAPED_AT_ONCE):
        if start:
            await pause()
        made += [make(row) for row in rows[start : start + SHAPED_AT_ONCE]]
    return made


def slices(body: bytes) -> Iterator[bytes]:
    """A long body that is there already."""
    return (body[start : start + SLICE_BYTES] for start in range(0, len(body), SLICE_BYTES))


async def _send(pieces: Iterator[bytes], pause: Pause) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
        await pause()  # sending does not pause as long as the client reads
