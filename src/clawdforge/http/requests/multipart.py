"""Reads the file of a multipart form piece by piece, without holding more than one piece."""

from collections.abc import AsyncIterator, Callable
from typing import Final

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import Request

from clawdforge.wire.errors import BodyTooLarge, InvalidRequest, MissingParameter, UnsupportedMediaType

FIELD: Final = b"file"
MAX_PARTS: Final = 16
FORM_BYTES: Final = 64 * 1024
"""How much a form may contain besides its file."""


class FileForm:
    """Call `name` first, then read `pieces` to their end. `field` knows what stands before the file.

    Each part costs the parser time that everybody waits for, so there may be few.
    """

    def __init__(self, request: Request) -> None:
        kind, options = parse_options_header(request.headers.get("content-type", ""))
        if kind != b"multipart/form-data":
            raise UnsupportedMediaType("send the file as multipart/form-data, in a field named file")
        self._body = request.stream()
        self._header = self._value = b""
        self._disposition = b""
        self._name: str | None = None
        self._in_file = self._ended = False
        self._parts = self._other_bytes = 0
        self._field = b""
        self._fields: dict[bytes, bytes] = {}
        self._data: list[bytes] = []
        callbacks: dict[str, Callable[..., None]] = {
            "on_part_begin": self._on_part_begin,
            "on_header_field": self._on_header_field,
            "on_header_value": self._on_header_value,
            "on_header_end": self._on_header_end,
            "on_headers_finished": self._on_headers_finished,
            "on_part_data": self._on_part_data,
            "on_part_end": self._on_part_end,
            "on_end": self._on_end,
        }
        try:
            self._parser = MultipartParser(options.get(b"boundary", b""), callbacks)  # type: ignore[arg-type]  # any subset
        except FormParserError as error:
            raise _invalid(error) from None
        if b"boundary" not in options:
            raise InvalidRequest("the Content-Type of a multipart form must name its boundary")

    async def name(self) -> str:
        """The file's name as the caller gave it; it may be anything."""
        while self._name is None and await self._feed():
            pass
        if self._name is None:
            raise MissingParameter("the form has no field named file; send the file in one")
        return self._name

    def field(self, name: str) -> str | None:
        """A field that came before the file."""
        found = self._fields.get(name.encode())
        return None if found is None else found.decode("utf-8", "replace")

    async def pieces(self) -> AsyncIterator[bytes]:
        """The file's content. Raises when the form is incomplete."""
        more = True
        while more:
            if self._data:
                data, self._data = b"".join(self._data), []
                yield data
            more = await self._feed()
        if not self._ended:
            raise InvalidRequest("the form was cut off; send the file again")

    async def _feed(self) -> bool:
        """Parse one more piece of the body; False at its end."""
        data = await anext(self._body, b"")
        if not data:
            return False
        try:
            self._parser.write(data)
        except FormParserError as error:
            raise _invalid(error) from None
        return True

    def _on_part_begin(self) -> None:
        self._disposition = b""
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise BodyTooLarge(f"the form has more than {MAX_PARTS} parts; send the file and little else")

    def _on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _on_header_end(self) -> None:
        if self._header.lower() == b"content-disposition":
            self._disposition = self._value
        self._header = self._value = b""

    def _on_headers_finished(self) -> None:
        _, options = parse_options_header(self._disposition.decode("latin-1"))
        self._field = options.get(b"name", b"")
        if self._field != FIELD:
            return
        if self._name is not None:
            raise InvalidRequest("the form has more than one field named file; send one file at a time")
        self._in_file = True
        self._name = options.get(b"filename", FIELD).decode("utf-8", "replace")

    def _on_part_data(self, data: bytes, start: int, end: int) -> None:
        if self._in_file:
            self._data.append(data[start:end])
            return
        self._other_bytes += end - start
        if self._other_bytes > FORM_BYTES:
            raise BodyTooLarge(f"the form has more than {FORM_BYTES:,} bytes besides its file")
        self._fields[self._field] = self._fields.get(self._field, b"") + data[start:end]

    def _on_part_end(self) -> None:
        self._in_file = False

    def _on_end(self) -> None:
        self._ended = True


def _invalid(error: FormParserError) -> InvalidRequest:
    return InvalidRequest(f"the body is not a valid multipart form: {error}")
