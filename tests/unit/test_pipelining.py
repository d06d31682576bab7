"""Requests that are sent before the one in front of them is answered."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from uvicorn import Config
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.server import ServerState

from clawdforge.http.connections.door import Door, DoorLimits
from clawdforge.http.connections.protocol import FEW_WAITING, MAX_WAITING, ForgeProtocol

STREAM = b"GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n"
NEXT = b"GET /next HTTP/1.1\r\nHost: localhost\r\n\r\n"
GARBAGE = b"\x00\x01\r\n\r\n"
FIRST = b"first\r\n"


class Stand:
    """A server whose streams last until their clients hang up."""

    def __init__(self) -> None:
        self.state = ServerState()
        self.begun: list[str] = []
        self.has_ended = asyncio.Event()
        config = Config(self.serve, http=ForgeProtocol, ws="none", lifespan="off", interface="asgi3")
        behind_proxy = ProxyHeadersMiddleware(self.serve)
        given: dict[str, Any] = {"config": config, "server_state": self.state, "app_state": {}}
        door = Door(DoorLimits())
        self.make = lambda: ForgeProtocol(door=door, behind_proxy=behind_proxy, **given)
        self.port = 0
        self.clients: list[asyncio.StreamWriter] = []

    async def serve(self, scope: Any, receive: Any, send: Any) -> None:
        self.begun.append(scope["path"])
        is_stream = scope["path"] == "/stream"
        length = [] if is_stream else [(b"content-length", b"4")]
        await send({"type": "http.response.start", "status": 200, "headers": length})
        if is_stream:
            await send({"type": "http.response.body", "body": b"first", "more_body": True})
            while (await receive())["type"] != "http.disconnect":
                pass
            self.has_ended.set()
        await send({"type": "http.response.body", "body": b"" if is_stream else b"next"})

    async def call(self, data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.clients.append(writer)
        writer.write(data)
        return reader, writer


@pytest.fixture
async def stand() -> AsyncIterator[Stand]:
    found = Stand()
    server = await asyncio.get_running_loop().create_server(found.make, "127.0.0.1", 0)
    found.port = server.sockets[0].getsockname()[1]
    async with server:
        yield found
    for client in found.clients:
        client.transport.abort()


@pytest.mark.parametrize("behind", [b"", NEXT, NEXT * 2], ids=["nothing", "one", "two"])
async def test_a_stream_ends_when_its_client_hangs_up_whatever_it_sent_behind(
    stand: Stand, behind: bytes
) -> None:
    reader, writer = await stand.call(STREAM + behind)
    await reader.readuntil(FIRST)
    writer.transport.abort()
    async with asyncio.timeout(10):
        await stand.has_ended.wait()
    assert stand.begun == ["/stream"]


async def test_a_hang_up_is_heard_also_if_nothing_is_sent(stand: Stand) -> None:
    reader, writer = await stand.call(STREAM)
    await reader.readuntil(FIRST)
    (protocol,) = stand.state.connections
    assert isinstance(protocol, ForgeProtocol)
    protocol.data_received(NEXT * FEW_WAITING)  # which came while somebody waits for the end of the first
    writer.close()
    async with asyncio.timeout(10):
        await stand.has_ended.wait()


async def test_no_refusal_is_written_into_an_answer(stand: Stand) -> None:
    reader, writer = await stand.call(STREAM)
    await reader.readuntil(FIRST)
    writer.write(NEXT + GARBAGE)
    async with asyncio.timeout(10):
        assert b"HTTP/1.1" not in await reader.read()
        await stand.has_ended.wait()


async def test_only_so_many_requests_wait_on_a_connection(stand: Stand) -> None:
    """A read brings up to 256 KiB: to take 14,000 requests out of it held the event loop for 0.1 s."""
    reader, _ = await stand.call(STREAM)
    await reader.readuntil(FIRST)
    (protocol,) = stand.state.connections
    assert isinstance(protocol, ForgeProtocol)
    protocol.data_received(NEXT * MAX_WAITING)
    assert not protocol.transport.is_closing()
    protocol.data_received(NEXT * 1000)
    assert len(protocol.pipeline) == MAX_WAITING
    async with asyncio.timeout(10):
        assert b"HTTP/1.1" not in await reader.read()
        await stand.has_ended.wait()
    assert stand.begun == ["/stream"]


async def test_requests_that_wait_are_answered_in_turn(stand: Stand) -> None:
    reader, _ = await stand.call(NEXT * (MAX_WAITING + 1))
    async with asyncio.timeout(10):
        for _ in range(MAX_WAITING + 1):
            await reader.readuntil(b"\r\n\r\nnext")
