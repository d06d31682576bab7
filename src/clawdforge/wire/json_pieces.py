"""Parses JSON with long texts in it a piece at a time, so that whoever parses lets others run in between.

A parser holds the interpreter until it is done: 30 ms and more for a text of 24 MiB, in whichever thread.
Here what is long is cut out first, the rest is parsed as usual, and each long text is decoded in pieces.
"""

import secrets
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

PIECE_BYTES: Final = 64 * 1024
"""Texts that are not longer stay where they are."""

ESCAPE_BYTES: Final = 6
"""Of the longest escape, such as `\\u00e9`. All others have two."""

HIGH_SURROGATES: Final = tuple(
    f"\\u{first}{second}".encode() for first in "dD" for second in ("8", "9", "a", "b", "A", "B")
)
LETTER_BYTES: Final = 4
CONTINUES: Final = 0b1000_0000
"""How the bytes of a letter begin that are not its first."""


class _Text(NamedTuple):
    """Where a long text lies, without its quotation marks."""

    start: int
    end: int


def parse_in_pieces(data: bytes | bytearray, parse: Callable[[bytes | bytearray], Any]) -> Any:
    """What `parse` would give for all of it. It is called for pieces of texts as well, in quotation marks.

    It gives None for what is no JSON, or raises; so does this. Where letters are broken and `parse`
    marks that, there may be more marks.
    """
    texts = list(_find_long_texts(data))
    if not texts:
        return parse(data)
    name = secrets.token_hex(16)
    rest: list[bytes | bytearray] = []
    at = 0
    for number, text in enumerate(texts):
        rest += [data[at : text.start], f"{name}{number:08x}".encode()]
        at = text.end
    value = parse(b"".join([*rest, data[at:]]))
    found: dict[str, str] = {}
    for number, text in enumerate(texts):
        pieces = [parse(b'"' + piece + b'"') for piece in _cut(data, text)]
        if not all(isinstance(piece, str) for piece in pieces):
            return None
        found[f"{name}{number:08x}"] = "".join(pieces)
    return _put_back(value, found)


def _find_long_texts(data: bytes | bytearray) -> Iterator[_Text]:
    """Those that begin and end in different pieces."""
    inside, begun, start = False, 0, 0
    while start < len(data):
        piece = _without_escapes(data, start, start + PIECE_BYTES)
        count = piece.count(b'"')
        if count and inside:
            end = start + piece.find(b'"')
            if end - begun > PIECE_BYTES:
                yield _Text(begun, end)
        inside ^= count % 2 == 1
        if count and inside:
            begun = start + piece.rfind(b'"') + 1
        start += len(piece)


def _without_escapes(data: bytes | bytearray, start: int, end: int) -> bytes | bytearray:
    """A piece of the same length in which each quotation mark is one, and each backslash begins an escape.

    It may be a byte longer than was asked for: a backslash belongs to what follows it.
    """
    piece = data[start:end]
    if (len(piece) - len(piece.rstrip(b"\\"))) % 2:
        piece = data[start : end + 1]
    return piece.replace(rb"\\", b"..").replace(rb"\"", b"..") if b"\\" in piece else piece


def _cut(data: bytes | bytearray, text: _Text) -> Iterator[bytes | bytearray]:
    """A text in pieces, none of which ends in the middle of an escape or a letter."""
    start = text.start
    while text.end - start > PIECE_BYTES + 1:
        piece = _without_escapes(data, start, start + PIECE_BYTES)
        end = start + _find_end(piece, data[start + len(piece)])
        yield data[start:end]
        start = end
    yield data[start : text.end]


def _find_end(piece: bytes | bytearray, following: int) -> int:
    """How much of a piece can be read by itself; `following` is the byte behind it."""
    end = len(piece)
    last = piece.rfind(b"\\", end - ESCAPE_BYTES)
    if last >= 0 and last + (ESCAPE_BYTES if piece[last + 1 : last + 2] == b"u" else 2) > end:
        end, following = last, piece[last]  # the escape is not whole
    if piece.endswith(HIGH_SURROGATES, end - ESCAPE_BYTES, end - 2):
        return end - ESCAPE_BYTES  # the other half of the letter follows
    for _ in range(LETTER_BYTES):
        if following & 0b1100_0000 != CONTINUES:
            break
        end -= 1
        following = piece[end]
    return end


def _put_back(value: Any, texts: dict[str, str]) -> Any:
    """In place, level by level: it may be nested as deeply as a parser reads."""
    if isinstance(value, str):
        return texts.get(value, value)
    waiting, left = [value], len(texts)
    while waiting and left:
        holder = waiting.pop()
        if isinstance(holder, dict) and not texts.keys().isdisjoint(holder):
            renamed = [(texts.get(key, key), each) for key, each in holder.items()]
            holder.clear()
            holder.update(renamed)
        elif not isinstance(holder, dict | list):
            continue
        for place, each in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
            if isinstance(each, str):
                if each in texts:
                    holder[place] = texts[each]
                    left -= 1
            elif isinstance(each, dict | list):
                waiting.append(each)
    return value
