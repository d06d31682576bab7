"""How many values a JSON text holds and how deeply they are nested, found out before and without much work.

A parser makes an object of every value and lets nobody else run meanwhile: 30 MiB of `{}` take it many
seconds. So whoever reads JSON from outside asks here first. What is looked at is the text itself, a piece at
a time, without what stands in strings.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

LARGE_BYTES: Final = 256 * 1024
"""From here on JSON is parsed in a thread, so that the event loop goes on."""

MAX_LINE_VALUES: Final = 200_000
PIECE_BYTES: Final = 64 * 1024


def has_more_values(data: bytes | bytearray, most: int) -> bool:
    """Whether a JSON text holds more values than that: each but the first comes after a `[`, `{` or `,`."""
    if len(data) <= most or not _has_more_marks(cut(data), most):
        return False
    return _has_more_marks(outside_strings(data), most)


def _has_more_marks(pieces: Iterable[bytes | bytearray], most: int) -> bool:
    """Looks at no more of them than it must: the interpreter does nothing else while it counts in one."""
    count = 0
    for piece in pieces:
        count += _marks(piece)
        if count > most:
            return True
    return False


def cut(data: bytes | bytearray) -> Iterator[bytes | bytearray]:
    """Pieces of which a look at one is short."""
    return (data[start : start + PIECE_BYTES] for start in range(0, len(data), PIECE_BYTES))


def outside_strings(data: bytes | bytearray) -> Iterator[bytes | bytearray]:
    """A JSON text without its strings, piece by piece."""
    start, inside = 0, 0
    while start < len(data):
        end = start + PIECE_BYTES
        piece = data[start:end]
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2:  # a backslash belongs to what follows it
            end += 1
            piece = data[start:end]
        parts = piece.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')
        yield b"".join(parts[inside::2])
        inside = (inside + len(parts) - 1) % 2
        start = end


def is_deeper(value: Any, most: int) -> bool:
    """Whether a parsed value is nested more deeply than that. Level by level, without recursion."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(most):
        if not level:
            return False
        level = [
            child
            for holder in level
            for child in (holder.values() if isinstance(holder, dict) else holder)
            if isinstance(child, dict | list)
        ]
    return bool(level)


def is_larger(value: Any, most: int) -> bool:
    """Whether a parsed value would take more characters than that to write; looks at no more than it must."""
    room = most
    waiting = [value]
    while waiting and room >= 0:
        item = waiting.pop()
        room -= 1
        if isinstance(item, str):
            room -= len(item)
        elif isinstance(item, dict | list):
            if len(item) > room:
                return True
            waiting.extend(item)
            if isinstance(item, dict):
                waiting.extend(item.values())
    return room < 0


def write_briefly(value: Any, most: int) -> str:
    """A parsed value as a text of that length at most; of what would be longer to write only the kind."""
    if isinstance(value, str):
        return value[:most]
    return f"({type(value).__name__})" if is_larger(value, most) else str(value)[:most]


def _marks(data: bytes | bytearray) -> int:
    return data.count(b",") + data.count(b"{") + data.count(b"[")
