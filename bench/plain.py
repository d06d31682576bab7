"""HTTP/1.1 on one connection without a library: who measures on the same machine must cost little."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self
from urllib.parse import urlsplit

WITHIN_SECS: Final = 120.0
"""Nothing here may take longer: a server that hangs ends a row, and not the evening."""
PIECE: Final = 1 << 16
ENDING: Final = b"\r\n0\r\n\r\n"
"""How a streamed answer ends."""
EVENT_STREAM: Final = {"Accept": "text/event-stream"}


class Refused(Exception):
    """A server answered with something else than success."""


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


def as_json(method: str, path: str, body: Any, **headers: str) -> Request:
    return Request(method, path, json.dumps(body).encode(), {"Content-Type": "application/json", **headers})


class Connection:
    """Kept alive from request to request; `headers` go with each of them."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._url = urlsplit(url)
        self._headers = {"Host": self._url.netloc, **headers}
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    @classmethod
    async def open(cls, url: str, headers: Mapping[str, str]) -> Self:
        made = cls(url, headers)
        await made._connect()
        return made

    async def _connect(self) -> asyncio.StreamReader:
        tls = None
        if self._url.scheme == "https":
            tls = ssl.create_default_context()
            tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        opening = asyncio.open_connection(self._url.hostname, self._url.port, ssl=tls, limit=PIECE)
        reader, self._writer = await asyncio.wait_for(opening, WITHIN_SECS)
        self._reader = reader
        return reader

    async def ask(self, request: Request) -> bytes:
        """The whole answer."""
        async with asyncio.timeout(WITHIN_SECS):
            reader, headers = await self._send(request)
            if headers.get("transfer-encoding") == "chunked":
                body = b"".join([piece async for piece in _chunks(reader)])
            else:
                body = await reader.readexactly(int(headers.get("content-length", "0")))
        if int(headers["status"]) >= 300:
            raise Refused(f"{request.method} {request.path}: {headers['status']} {body[:300]!r}")
        return body

    async def stream(self, request: Request) -> AsyncIterator[bytes]:
        """When the answer has begun: what comes, as it comes, with the sizes of HTTP's chunks in between."""
        async with asyncio.timeout(WITHIN_SECS):
            reader, headers = await self._send(request)
        if int(headers["status"]) >= 300:
            raise Refused(f"{request.method} {request.path}: {headers['status']}")
        return _pieces(reader)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    async def _send(self, request: Request) -> tuple[asyncio.StreamReader, dict[str, str]]:
        """The headers of the answer, and its status among them.

        A server ends what was idle for some seconds, perhaps while the next request is on its way: then it
        has not read it, and it is sent again.
        """
        reader = self._reader
        if reader is not None and not reader.at_eof():
            try:
                return reader, await self._ask_head(reader, request)
            except asyncio.IncompleteReadError as error:
                if error.partial:
                    raise
            except ConnectionResetError:
                pass
        self.close()
        reader = await self._connect()
        return reader, await self._ask_head(reader, request)

    async def _ask_head(self, reader: asyncio.StreamReader, request: Request) -> dict[str, str]:
        assert self._writer
        lines = [f"{request.method} {request.path} HTTP/1.1", f"Content-Length: {len(request.body)}"]
        lines += [f"{name}: {value}" for name, value in {**self._headers, **request.headers}.items()]
        self._writer.write("\r\n".join([*lines, "", ""]).encode() + request.body)
        head = await reader.readuntil(b"\r\n\r\n")
        first, *others = head.decode("latin-1").split("\r\n")
        found = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in others)}
        return {**found, "status": first.split()[1]}


async def _pieces(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    tail = b""
    async with asyncio.timeout(WITHIN_SECS):
        while not tail.endswith(ENDING) and (piece := await reader.read(PIECE)):
            tail = (tail + piece)[-len(ENDING) :]
            yield piece


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int((await reader.readline()).split(b";")[0], 16):
        yield await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readline()
