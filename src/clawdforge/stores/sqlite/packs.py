"""What a pack is: many events of one session, one after the other, as one block of bytes, and back again.

A pack begins with what the columns say, as lists, which repeat themselves and so take nearly no room. Then
come the events. An event says its number first; where it does, that is left out, since the pack knows it.
"""

import zlib
from collections.abc import Sequence
from typing import Final, NamedTuple

import apsw
import orjson

ZLIB: Final = 1
"""The only codec so far.

On logs of short chunks, 512 events to a pack, zlib takes 16 bytes for an event of 111 and is read in 0.2 ms.
bz2 takes 13 and lzma 15, but both take several times as long to read, and the event loop reads. Python 3.11
has no zstd; what it might save is not worth a dependency.
"""
EARLY: Final = 2
"""The same, of what one commit has brought: when it is old, it is packed again with what lies around it."""
LEVEL: Final = 6  # 9 saves another 3 % and takes two to four times as long
EARLY_LEVEL: Final = 1  # takes half as long, and a twentieth more room
MAX_EVENTS: Final = 512
MAX_BYTES: Final = 1 << 18
"""Whoever needs one event of a pack reads all of it. A larger event than this stays a row of its own."""
LENGTH: Final = 4  # bytes of the number that says how long the lists are


DAMAGED: Final = apsw.CorruptError
"""What `unpack` raises for bytes that are no pack."""


class EventRow(NamedTuple):
    """An event with the columns of its table."""

    seq: int
    turn: int | None
    type: str
    by_agent: int
    data: bytes
    compact: int


def pack(rows: Sequence[EventRow]) -> bytes:
    """Rows whose numbers follow one another. Raises ValueError if they would not come back the same."""
    packed = compress(rows, LEVEL)
    if unpack(ZLIB, rows[0].seq, rows[-1].seq, packed) != tuple(rows):
        raise ValueError("these events cannot be packed")
    return packed


def compress(rows: Sequence[EventRow], level: int) -> bytes:
    """The same of rows that were just made, and hold what they should."""
    starts = [_start(row.seq) for row in rows]
    begins = [row.data.startswith(start) for row, start in zip(rows, starts, strict=True)]
    bodies = [
        row.data[len(start) :] if begin else row.data
        for row, start, begin in zip(rows, starts, begins, strict=True)
    ]
    lists = orjson.dumps(
        [
            [row.turn for row in rows],
            [row.type for row in rows],
            [row.by_agent for row in rows],
            [row.compact for row in rows],
            [int(begin) for begin in begins],
            [len(body) for body in bodies],
        ]
    )
    return zlib.compress(b"".join([len(lists).to_bytes(LENGTH, "big"), lists, *bodies]), level)


def unpack(codec: int, first: int, last: int, packed: bytes) -> tuple[EventRow, ...]:
    """The rows again. Raises the error of a damaged page when the pack is not what its columns say."""
    try:
        return _read(first, last, _inflate(codec, packed))
    except (zlib.error, ValueError, TypeError) as error:
        raise DAMAGED(f"the events from {first} to {last} cannot be unpacked: {error}") from error


def _inflate(codec: int, packed: bytes) -> bytes:
    """All of it, but no more than a pack may hold: a few bytes can be made to stand for gigabytes."""
    if codec not in (ZLIB, EARLY):
        raise ValueError(f"its codec is {codec}")
    inflater = zlib.decompressobj()
    raw = inflater.decompress(packed, 4 * MAX_BYTES)
    if not inflater.eof:
        raise ValueError("it is cut short, or too large")
    return raw


def _read(first: int, last: int, raw: bytes) -> tuple[EventRow, ...]:
    at = LENGTH + int.from_bytes(raw[:LENGTH], "big")
    turns, types, by_agent, compact, begins, lengths = orjson.loads(raw[LENGTH:at])
    rows: list[EventRow] = []
    columns = zip(turns, types, by_agent, compact, begins, lengths, strict=True)
    for seq, (turn, kind, agents, form, begin, length) in enumerate(columns, first):
        body = raw[at : at + length]
        at += length
        rows.append(EventRow(seq, turn, kind, agents, _start(seq) + body if begin else body, form))
    if at != len(raw) or not rows or rows[-1].seq != last:
        raise ValueError(f"it holds {len(rows)} events in {len(raw)} bytes")
    return tuple(rows)


def _start(seq: int) -> bytes:
    return b'{"seq":%d,' % seq
