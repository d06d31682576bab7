"""Lines of JSON from a program that is not trusted: framed in bounded memory, decoded whatever they hold.

What comes out can always be encoded again: text is valid Unicode, numbers fit, nesting has an end. A line
with more values than anybody needs is dropped like one that is too long. A long one is decoded in a thread.
"""

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import orjson

from clawdforge.jsonrpc.pace import Pace
from clawdforge.wire.base import Json
from clawdforge.wire.json_bounds import LARGE_BYTES, MAX_LINE_VALUES, cut, has_more_values, is_deeper
from clawdforge.wire.json_pieces import parse_in_pieces

MAX_LINE_BYTES: Final = 32 * 1024 * 1024
MAX_DEPTH: Final = 200
"""orjson writes 254 levels; an event puts a message into a level or two of its own."""

GARBAGE_TAIL_BYTES: Final = 2048
SHORT_BYTES: Final = 4096
HEAD_BYTES: Final = 256
SURROGATE: Final = re.compile("[\ud800-\udfff]")


class Line(NamedTuple):
    """One JSON object and the bytes it took."""

    message: Json
    size: int


@dataclass(frozen=True, slots=True)
class Oversize:
    """A line beyond a limit: how long it was, and how it began, which may tell whom it was for."""

    dropped_bytes: int
    head: bytes


@dataclass(frozen=True, slots=True)
class LargeLine:
    """A line that is to be decoded in a thread; see `Framer.decode`."""

    data: bytes | bytearray


class Framer:
    """Takes chunks as they come and gives the whole lines in them; holds at most one line."""

    def __init__(self, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self.garbage_lines = 0
        self._garbage = b""
        self._max = max_line_bytes
        self._held = bytearray()
        self._dropped = 0

    def feed(self, chunk: bytes) -> list[Line | Oversize | LargeLine]:
        """The lines that this chunk completes, in order."""
        return list(self.frames(chunk))

    def frames(
        self, chunk: bytes, take: Callable[[bytes | bytearray], bool] = lambda _: False
    ) -> Iterator[Line | Oversize | LargeLine]:
        """The same one by one; a short line that `take` has taken is not among them.

        It is asked when all before that line were handled.
        """
        first, *rest = chunk.split(b"\n")
        self._hold(first)
        if not rest:
            return
        last = rest.pop()
        out: list[Line | Oversize | LargeLine] = []
        if self._dropped or not self._held or len(self._held) > SHORT_BYTES or not take(self._held):
            self._end_line(out)
        else:
            self._held = bytearray()
        for line in rest:
            while out:
                yield out.pop()
            if len(line) > self._max:
                out.append(Oversize(len(line), line[:HEAD_BYTES]))
            elif line and not (len(line) <= SHORT_BYTES and take(line)):
                self._take(line, out)
        self._hold(last)
        while out:
            yield out.pop()

    def finish(self) -> list[Line | Oversize | LargeLine]:
        """What is left when the stream ends: a last line may lack its newline."""
        out: list[Line | Oversize | LargeLine] = []
        self._end_line(out)
        return out

    async def decode(self, line: bytes | bytearray, pace: Pace) -> Line | Oversize | None:
        """None where it is no JSON object."""
        return await pace.compute(partial(self._decode, line))

    async def decode_large(
        self, frames: list[Line | Oversize | LargeLine], pace: Pace
    ) -> AsyncIterator[Line | Oversize]:
        """The same lines with the large ones decoded, in order. They are taken out of the list.

        A line of megabytes is not kept while what it says is handled.
        """
        frames.reverse()  # to take the first out of a list of thousands would move all the others
        while frames:
            frame: Line | Oversize | LargeLine | None = frames.pop()
            if isinstance(frame, LargeLine):
                frame = await self.decode(frame.data, pace)
            if frame is not None:
                yield frame

    def garbage_tail(self) -> str:
        """The last lines that were not JSON objects, for an error message."""
        return self._garbage.decode("utf-8", "replace").strip()

    def _hold(self, part: bytes) -> None:
        if self._dropped:
            self._dropped += len(part)
        elif len(self._held) + len(part) > self._max:
            self._dropped = len(self._held) + len(part)
            self._held = self._held[:HEAD_BYTES] + part[: max(0, HEAD_BYTES - len(self._held))]
        else:
            self._held += part

    def _end_line(self, out: list[Line | Oversize | LargeLine]) -> None:
        line, dropped = self._held, self._dropped  # which nobody changes any more
        self._held, self._dropped = bytearray(), 0
        if dropped:
            out.append(Oversize(dropped, bytes(line)))
        elif line:
            self._take(line, out)

    def _take(self, line: bytes | bytearray, out: list[Line | Oversize | LargeLine]) -> None:
        if len(line) <= MAX_LINE_VALUES and (message := decode_line(line)) is not None:
            out.append(Line(message, len(line)))  # nearly all are so, and cannot hold too many values
            return
        found = LargeLine(line) if len(line) > LARGE_BYTES else self._decode(line)
        if found is not None:
            out.append(found)

    def _decode(self, line: bytes | bytearray) -> Line | Oversize | None:
        if has_more_values(line, MAX_LINE_VALUES):
            return Oversize(len(line), bytes(line[:HEAD_BYTES]))
        message = decode_line(line) if len(line) <= LARGE_BYTES else decode_large_line(line)
        if message is not None:
            return Line(message, len(line))
        if not all(piece.isspace() for piece in cut(line)):
            self.garbage_lines += 1
            self._garbage = (self._garbage + line[-GARBAGE_TAIL_BYTES:] + b"\n")[-GARBAGE_TAIL_BYTES:]
        return None


def explain_lost_line(max_line_bytes: int) -> str:
    """Why a line was dropped, for whoever reads the turn."""
    return (
        f"a line was longer than {max_line_bytes} bytes (CLAWDFORGE_MAX_LINE_BYTES)"
        f" or held more than {MAX_LINE_VALUES:,} values"
    )


def decode_line(line: bytes | bytearray) -> Json | None:
    """The object in this line, or None. Never raises."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return _decode_leniently(line)
    if not isinstance(value, dict):
        return None
    if len(line) <= MAX_DEPTH or line.count(b"[") + line.count(b"{") <= MAX_DEPTH:
        return value
    cleaned = _clean(value, MAX_DEPTH) if is_deeper(value, MAX_DEPTH) else value
    return cleaned if isinstance(cleaned, dict) else None


def decode_large_line(line: bytes | bytearray) -> Json | None:
    """The same of one with long texts in it, a piece at a time."""
    try:
        value = parse_in_pieces(line, _parse)
    except (ValueError, RecursionError):
        return None
    cleaned = _clean(value, MAX_DEPTH) if is_deeper(value, MAX_DEPTH) else value
    return cleaned if isinstance(cleaned, dict) else None


def _decode_leniently(line: bytes | bytearray) -> Json | None:
    try:
        value = _parse_leniently(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _parse(data: bytes | bytearray) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return _parse_leniently(data)


def _parse_leniently(data: bytes | bytearray) -> Any:
    """With what strict JSON forbids and agents send: lone surrogates, NaN, raw tabs, broken UTF-8."""
    text = data.decode("utf-8", "replace").lstrip("\ufeff \t\r")
    if not text.startswith(("{", '"')):
        return None
    value = json.loads(text, strict=False, parse_int=_number, parse_constant=_no_constant)
    return _clean(value, MAX_DEPTH)


def _number(digits: str) -> float | int:
    if len(digits) > 20:
        return float(digits)
    value = int(digits)
    return value if -(2**63) <= value < 2**64 else float(value)


def _no_constant(_name: str) -> None:
    """NaN and the infinities, which JSON does not have."""


def _clean(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict | list) and depth == 0:
        return "(nested too deeply)"
    if isinstance(value, dict):
        return {SURROGATE.sub("\ufffd", key): _clean(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item, depth - 1) for item in value]
    return value
