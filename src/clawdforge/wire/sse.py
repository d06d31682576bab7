"""Server-sent events, both directions: frames from ready bytes, and a decoder fed with any slices.

Data is one line of JSON here, so a frame is three short lines. Heartbeats are comments and never
carry an id: an id names a durable event, and a reader resumes after it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

HEARTBEAT: Final = b": \n\n"
NUMBERED: Final = b"id: %d\nevent: %b\ndata: %b\n\n"

_BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Frame:
    """One dispatched event as a reader sees it."""

    event: str
    data: str
    id: str


def encode(data: bytes, *, event: str = "", id: str = "") -> bytes:  # noqa: A002 - the field's name
    """One frame around data that holds no line break."""
    return b"%b%b\n\n" % (begin_frame(event=event, id=id), data)


def encode_numbered(numbers: Iterable[int], names: Iterable[str], data: Iterable[bytes]) -> bytes:
    """Frames of events that have a number, one after another."""
    return b"".join(
        [NUMBERED % (seq, name.encode(), each) for seq, name, each in zip(numbers, names, data, strict=True)]
    )


def begin_frame(*, event: str = "", id: str = "") -> bytes:  # noqa: A002 - the field's name
    """What stands before the data."""
    head = f"id: {id}\n" if id else ""
    if event:
        head += f"event: {event}\n"
    return f"{head}data: ".encode()


class Decoder:
    """Turns a byte stream, cut anywhere, into frames. Follows the WHATWG rules for lines and fields.

    The parts of an unfinished line wait in a list and are joined once, so the work is linear in the
    bytes however small the slices are.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._after_cr = False
        self._started = False
        self._data: list[str] = []
        self._event = ""
        self.last_id = ""

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        for line in self._split_lines(chunk):
            frame = self._take_line(line)
            if frame is not None:
                yield frame

    def _split_lines(self, chunk: bytes) -> list[str]:
        if not self._started:
            chunk = self._strip_bom(chunk)
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if not chunk:
            return []
        self._after_cr = chunk.endswith(b"\r")
        first, *more = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._parts.append(first)
        if not more:
            return []
        last = more.pop()
        lines = [b"".join(self._parts), *more]
        self._parts = [last]
        return [line.decode("utf-8", "replace") for line in lines]

    def _strip_bom(self, chunk: bytes) -> bytes:
        start = b"".join(self._parts) + chunk
        if len(start) < len(_BOM) and _BOM.startswith(start):
            self._parts = [start]
            return b""
        self._parts = []
        self._started = True
        return start.removeprefix(_BOM)

    def _take_line(self, line: str) -> Frame | None:
        if not line:
            return self._dispatch()
        if line.startswith(":"):
            return None
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._event = value
        elif field == "id" and "\0" not in value:
            self.last_id = value
        return None

    def _dispatch(self) -> Frame | None:
        data, event = self._data, self._event
        self._data, self._event = [], ""
        if not data:
            return None
        return Frame(event=event or "message", data="\n".join(data), id=self.last_id)
