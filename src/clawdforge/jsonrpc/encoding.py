"""Encodes messages as lines; a long text a piece at a time, since whoever encodes holds the interpreter.

Text of 10 MiB takes 15 ms at once, in whichever thread, and nothing else of the server runs meanwhile.
"""

import secrets
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import orjson

from clawdforge.wire.base import Json

LONG_CHARS: Final = 1 << 18
PIECE_CHARS: Final = 1 << 16
DEPTH: Final = 5  # a prompt's text lies in a block of a list of the parameters of a message
BREADTH: Final = 64


@dataclass(frozen=True, slots=True)
class LongText:
    """A text as part of a message that is to be sent, in pieces: to join them would hold the interpreter."""

    pieces: tuple[str, ...]

    def __str__(self) -> str:
        return "".join(self.pieces)

    @property
    def is_long(self) -> bool:
        return sum(map(len, self.pieces)) > LONG_CHARS


async def encode_lines(messages: Iterable[Json], pause: Callable[[], Awaitable[None]]) -> list[bytes]:
    """Pieces that are lines when they are joined. Others run between any two pieces of a long text."""
    pieces: list[bytes] = []
    short: list[bytes] = []
    for message in messages:
        if not has_long_text(message):
            short.append(orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE))
            continue
        pieces.append(b"".join(short))
        for piece in encode_in_pieces(message):
            pieces.append(piece)
            await pause()
        short = [b"\n"]
    return [*pieces, b"".join(short)]


def has_long_text(value: Any, depth: int = DEPTH) -> bool:
    """Looks no further than where texts lie in messages: what is missed is only encoded at once."""
    if isinstance(value, str):
        return len(value) > LONG_CHARS
    if isinstance(value, LongText):
        return True
    if not depth or not isinstance(value, (dict, list)):
        return False
    for each in islice(value.values() if isinstance(value, dict) else value, BREADTH):
        if len(each) > LONG_CHARS if isinstance(each, str) else has_long_text(each, depth - 1):
            return True
    return False


def encode_in_pieces(message: Json) -> Iterator[bytes]:
    """What encoding it at once would give. A name that nobody can guess stands for each long text first."""
    name = secrets.token_hex(16)
    texts: list[str | LongText] = []
    between = orjson.dumps(_take_out(message, name, texts, DEPTH)).split(orjson.dumps(name))
    yield between[0]
    for text, after in zip(texts, between[1:], strict=True):
        yield b'"'
        for piece in text.pieces if isinstance(text, LongText) else _cut(text):
            yield orjson.dumps(piece)[1:-1]
        yield b'"' + after


def _cut(text: str) -> Iterator[str]:
    return (text[start : start + PIECE_CHARS] for start in range(0, len(text), PIECE_CHARS))


def _take_out(value: Any, name: str, texts: list[str | LongText], depth: int) -> Any:
    if isinstance(value, LongText) or (isinstance(value, str) and len(value) > LONG_CHARS):
        texts.append(value)
        return name
    if not depth:
        return value
    if isinstance(value, dict):
        return {key: _take_out(each, name, texts, depth - 1) for key, each in value.items()}
    return [_take_out(each, name, texts, depth - 1) for each in value] if isinstance(value, list) else value
