"""The smallest HTTP client that can be cut anywhere: one request a connection, and event streams."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

LIMIT = 1 << 26


class Cut(Exception):
    """The connection ended before the reply did, so the outcome of the request is unknown."""


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: bytes

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Frame:
    """One event of a stream: its number and its bytes."""

    seq: int
    data: bytes


def head(method: str, path: str, token: str, body: bytes | None, headers: dict[str, str]) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {token}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body is not None:
        kind = [] if "Content-Type" in headers else ["Content-Type: application/json"]
        lines += [*kind, f"Content-Length: {len(body)}"]
    return ("\r\n".join([*lines, "Connection: close", "", ""])).encode() + (body or b"")


async def request(
    port: int,
    method: str,
    path: str,
    token: str,
    *,
    body: Any = None,
    data: bytes | None = None,
    headers: dict[str, str] | None = None,
    seconds: float = 60,
) -> Reply:
    """`body` is sent as JSON, `data` as it is."""
    payload = data if body is None else json.dumps(body).encode()
    try:
        async with asyncio.timeout(seconds):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=LIMIT)
            try:
                writer.write(head(method, path, token, payload, headers or {}))
                status, fields = await _response(reader)
                return Reply(status, await _body(reader, fields))
            finally:
                writer.close()
    except (OSError, EOFError, ValueError, TimeoutError, asyncio.LimitOverrunError) as error:
        raise Cut(f"{method} {path}: {error!r}") from error


async def stream(
    port: int, path: str, token: str, after: int | None, *, receive_buffer: int | None = None
) -> AsyncIterator[Frame | None]:
    """The frames of a session's log; None for a heartbeat. Raises Cut when the connection ends."""
    headers = {"Accept": "text/event-stream"}
    if after is not None:
        headers["Last-Event-ID"] = str(after)
    writer = None
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=receive_buffer or LIMIT)
        writer.write(head("GET", path, token, None, headers))
        status, fields = await _response(reader)
        if status != 200:
            raise Cut(f"{path}: {status} {await _body(reader, fields)!r}")
        left = b""
        while True:
            size = int(await reader.readline(), 16)
            piece = await reader.readexactly(size + 2)
            if not size:
                raise Cut(f"{path}: the stream ended")
            *whole, left = (left + piece[:-2]).split(b"\n\n")
            for text in whole:
                yield _frame(text)
    except (OSError, EOFError, ValueError) as error:
        raise Cut(f"{path}: {error!r}") from error
    finally:
        if writer is not None:
            writer.close()


async def post_stream(
    port: int, path: str, token: str, body: Any, headers: dict[str, str]
) -> AsyncIterator[tuple[str, str]]:
    """The ids and the data of an answer in frames, to its end. Raises Cut, also for a refusal."""
    writer = None
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=LIMIT)
        writer.write(head("POST", path, token, json.dumps(body).encode(), headers))
        status, fields = await _response(reader)
        if status != 200:
            raise Cut(f"{path}: {status} {await _body(reader, fields)!r}")
        left = b""
        while size := int(await reader.readline(), 16):
            piece = (await reader.readexactly(size + 2))[:-2]
            *whole, left = (left + piece).split(b"\n\n")
            for text in whole:
                lines = [line.partition(b":") for line in text.split(b"\n")]
                found = {name.decode(): value.removeprefix(b" ").decode() for name, _, value in lines}
                if "data" in found:
                    yield found.get("id", ""), found["data"]
    except (OSError, EOFError, ValueError) as error:
        raise Cut(f"{path}: {error!r}") from error
    finally:
        if writer is not None:
            writer.close()


def _frame(text: bytes) -> Frame | None:
    seq, data = None, b""
    for line in text.split(b"\n"):
        if line.startswith(b"id:"):
            seq = int(line[3:])
        elif line.startswith(b"data:"):
            data += line[5:].removeprefix(b" ")
    if seq is None and not data:
        return None
    return Frame(-1 if seq is None else seq, data)


async def _response(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    text = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    fields = dict(line.lower().split(": ", 1) for line in text[1:] if line)
    return int(text[0].split()[1]), fields


async def _body(reader: asyncio.StreamReader, fields: dict[str, str]) -> bytes:
    if "content-length" in fields:
        return await reader.readexactly(int(fields["content-length"]))
    parts: list[bytes] = []
    while size := int(await reader.readline(), 16):
        parts.append((await reader.readexactly(size + 2))[:-2])
    return b"".join(parts)
