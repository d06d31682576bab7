"""Parses bodies as JSON that can also be written again, within as many values as a route needs."""

import re
from collections.abc import Iterator
from typing import Any, Final

import orjson

from clawdforge.wire.errors import BodyTooLarge, InvalidJson, InvalidRequest
from clawdforge.wire.json_bounds import LARGE_BYTES, has_more_values, is_deeper, outside_strings
from clawdforge.wire.json_pieces import PIECE_BYTES, parse_in_pieces

FEW_VALUES: Final = 200_000
MANY_VALUES: Final = 500_000
"""What a history may hold that is brought along; to parse it takes the interpreter for 15 to 22 ms."""

MAX_DEPTH: Final = 190
"""What we write may nest 254 levels; some are left for the event or the list that a value becomes part of."""

DIGITS: Final = bytes(ord("0") if chr(byte).isdecimal() else ord(" ") for byte in range(256))
LONG_NUMBER: Final = b"0" * 19
"""How a number that may have more than 64 bits looks after `translate` with DIGITS."""

LONGEST_INTEGER: Final = 20
INTEGER: Final = re.compile(rb"(?<![\w.+-])-?\d{19,}(?![\w.])")


def parse_body(raw: bytes, most_values: int) -> Any:
    """Parse a body as JSON that we can also write: no NaN, no lone surrogates, not nested too deeply."""
    if has_more_values(raw, most_values):
        raise BodyTooLarge(f"the body holds more than {most_values:,} values; send less at once")
    try:
        value = orjson.loads(raw) if len(raw) <= LARGE_BYTES else parse_in_pieces(raw, orjson.loads)
    except orjson.JSONDecodeError as error:
        where = error if len(raw) <= LARGE_BYTES else error.msg  # of a large one only a piece was read
        raise InvalidJson(f"the body is not valid JSON: {where}") from None
    may_be_deep = len(raw) > LARGE_BYTES or raw.count(b"{") + raw.count(b"[") > MAX_DEPTH
    if may_be_deep and is_deeper(value, MAX_DEPTH):
        raise InvalidJson("the body is nested too deeply")
    _check_integers(raw)
    return value


def _check_integers(raw: bytes) -> None:
    """Refuse integers of more than 64 bits, which the parser would silently turn into floats."""
    if not any(LONG_NUMBER in piece.translate(DIGITS) for piece in _overlapping(raw)):
        return
    for found in INTEGER.findall(b"".join(outside_strings(raw))):
        if len(found) > LONGEST_INTEGER or not -(2**63) <= int(found) < 2**64:
            number = found[:40].decode()
            raise InvalidRequest(f"{number} has more than 64 bits and cannot be stored; send it as text")


def _overlapping(raw: bytes) -> Iterator[bytes]:
    """Pieces of which each begins with the end of the one before, so that no long number is missed."""
    return (raw[start : start + PIECE_BYTES + len(LONG_NUMBER)] for start in range(0, len(raw), PIECE_BYTES))
