"""A WebSocket by hand: what goes into which packet is for the test to say."""

import asyncio
import base64
import json
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.api.harness import Server
from tests.faces.kit import WAIT

TEXT, CLOSE, PING = 1, 8, 9
KEY = base64.b64encode(bytes(16)).decode()


def opening(server: Server, token: str, path: str = "/acp") -> bytes:
    """The request that asks for a WebSocket."""
    lines = [
        f"GET {path} HTTP/1.1",
        f"Host: {server.url.partition('//')[2]}",
        f"Authorization: Bearer {token}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Key: {KEY}",
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def frame(message: Any) -> bytes:
    """A whole message as one frame, masked with zeros."""
    data = json.dumps(message).encode()
    size = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + struct.pack(">H", len(data))
    return bytes([0x80 | TEXT]) + size + bytes(4) + data


@dataclass
class RawLine:
    """A connection. Nothing is answered that the test does not answer."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, *packets: bytes) -> None:
        for packet in packets:
            self.writer.write(packet)
            await self.writer.drain()

    async def head(self) -> tuple[int, bytes]:
        """Status and headers of the next answer."""
        async with asyncio.timeout(WAIT):
            found = await self.reader.readuntil(b"\r\n\r\n")
        return int(found.split()[1]), found

    async def frame(self) -> tuple[int, bytes]:
        """Kind and content of the next frame."""
        async with asyncio.timeout(WAIT):
            first, size = await self.reader.readexactly(2)
            if size == 126:
                (size,) = struct.unpack(">H", await self.reader.readexactly(2))
            return first & 0xF, await self.reader.readexactly(size)

    async def until(self, kind: int) -> bytes:
        """The content of the next frame of a kind."""
        while True:
            found, data = await self.frame()
            if found == kind:
                return data


@asynccontextmanager
async def connected(server: Server) -> AsyncGenerator[RawLine]:
    host, _, port = server.url.partition("//")[2].partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield RawLine(reader, writer)
    finally:
        writer.close()
