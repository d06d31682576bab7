"""JSON by what the interpreter has built in: `json` takes regular expressions along, a third of a start."""

from __future__ import annotations

from _json import encode_basestring, encode_basestring_ascii, make_encoder, make_scanner

WHITE = " \t\n\r"


class _Reading:
    """The defaults of `json`, in the shape that the scanner asks for."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def _refuse(value: object) -> object:
    raise TypeError(f"{value!r} cannot be told as JSON")


SCAN = make_scanner(_Reading)  # type: ignore[arg-type] # it needs no more than these names
CLOSE = make_encoder(None, _refuse, encode_basestring, None, ":", ",", False, False, True)
CLOSE_ASCII = make_encoder(None, _refuse, encode_basestring_ascii, None, ":", ",", False, False, True)
WIDE = make_encoder(None, _refuse, encode_basestring, None, ": ", ", ", True, False, True)


def decode(line: bytes | str) -> object:
    """What a line says. Raises ValueError for anything that is no JSON."""
    text = (line if isinstance(line, str) else line.decode("utf-8", "surrogatepass")).strip(WHITE)
    try:
        value, end = SCAN(text, 0)
    except (StopIteration, ValueError, SystemError) as problem:  # the last: `json` has the words for it
        raise ValueError("it is no JSON") from problem
    if end < len(text):
        raise ValueError(f"there is more behind the JSON, from character {end} on")
    return value


def encode(value: object) -> bytes:
    """Encode as UTF-8 JSON; what UTF-8 cannot hold (lone surrogates) is escaped."""
    try:
        return "".join(CLOSE(value, 0)).encode()
    except UnicodeEncodeError:
        return "".join(CLOSE_ASCII(value, 0)).encode()


def spell(value: object) -> str:
    """The same for people to read: with spaces, and what is in objects in the order of its names."""
    return "".join(WIDE(value, 0))
