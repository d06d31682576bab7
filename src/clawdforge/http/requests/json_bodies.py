"""Parses bodies as JSON that can also be written again, within as many values as a route needs."""

import re
from typing import Any, Final

import orjson

from clawdforge.wire.errors import BodyTooLarge, InvalidJson, InvalidRequest
from clawdforge.wire.json_bounds import has_more_values, is_deeper, outside_strings

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
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise InvalidJson(f"the body is not valid JSON: {error}") from None
    if raw.count(b"{") + raw.count(b"[") > MAX_DEPTH and is_deeper(value, MAX_DEPTH):
        raise InvalidJson("the body is nested too deeply")
    _check_integers(raw)
    return value


def _check_integers(raw: bytes) -> None:
    """Refuse integers of more than 64 bits, which the parser would silently turn into floats."""
    if LONG_NUMBER not in raw.translate(DIGITS):
        return
    for found in INTEGER.findall(b"".join(outside_strings(raw))):
        if len(found) > LONGEST_INTEGER or not -(2**63) <= int(found) < 2**64:
            number = found[:40].decode()
            raise InvalidRequest(f"{number} has more than 64 bits and cannot be stored; send it as text")
