"""Ways of a reader: one that does not read, one that comes again and again, very many of them."""

import asyncio
import socket

from proofs.kit.http import head
from proofs.noise.way import Noisy, Way

MIB = 1 << 20


async def big_message(noisy: Noisy) -> str:
    """A session with one message of many MiB."""
    session = await noisy.session()
    await noisy.client.submit(session, f"bytes {noisy.size(24, 4) * MIB}", "big")
    await noisy.client.wait_ended(session)
    return session


async def long_log(noisy: Noisy) -> str:
    """A session with very many events."""
    session = await noisy.session()
    await noisy.client.submit(session, f"flood {noisy.size(50_000, 2_000)} 20", "long")
    await noisy.client.wait_ended(session)
    return session


async def prepare_big(noisy: Noisy) -> None:
    await noisy.once("big", lambda: big_message(noisy))


async def prepare_long(noisy: Noisy) -> None:
    await noisy.once("long", lambda: long_log(noisy))


async def read_nothing(noisy: Noisy) -> None:
    """Ask for a stream and leave it in the socket; after a while, ask again."""
    session = await noisy.once("big", lambda: big_message(noisy))
    loop = asyncio.get_running_loop()
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.setblocking(False)
        await loop.sock_connect(sock, ("127.0.0.1", noisy.port))
        ask = head("GET", f"/sessions/{session}/events", noisy.token, None, {"Accept": "text/event-stream"})
        await loop.sock_sendall(sock, ask)
        noisy.bite((await loop.sock_recv(sock, 12)) == b"HTTP/1.1 200")
        await asyncio.sleep(1)


async def read_from_the_start(noisy: Noisy) -> None:
    """Catch up with all of a long log, hang up, and begin again."""
    session = await noisy.once("long", lambda: long_log(noisy))
    reader, writer = await noisy.connect()
    headers = {"Accept": "text/event-stream", "Last-Event-ID": "0"}
    writer.write(head("GET", f"/sessions/{session}/events", noisy.token, None, headers))
    seen = b""
    try:
        while b"turn.ended" not in seen:
            piece = await reader.read(1 << 16)
            if not piece:
                return
            seen = seen[-20:] + piece
        noisy.bite()
    finally:
        noisy.writers.discard(writer)
        writer.transport.abort()


async def reconnect(noisy: Noisy) -> None:
    """Come, hear the first bytes, and leave."""
    session = await noisy.once("long", lambda: long_log(noisy))
    reader, writer = await asyncio.open_connection("127.0.0.1", noisy.port)
    headers = {"Accept": "text/event-stream"}
    writer.write(head("GET", f"/sessions/{session}/events", noisy.token, None, headers))
    noisy.bite(bool(await reader.read(100)))
    writer.transport.abort()


async def listen_to_chatter(noisy: Noisy) -> None:
    """A hundred readers of an agent that talks without an end."""
    session = await noisy.once("session", noisy.session)
    await noisy.once("chatter", lambda: _chatter(noisy, session))
    reader, writer = await noisy.connect()
    headers = {"Accept": "text/event-stream"}
    writer.write(head("GET", f"/sessions/{session}/events?after=0", noisy.token, None, headers))
    while await reader.read(1 << 16):
        noisy.bite()


async def _chatter(noisy: Noisy, session: str) -> None:
    for number in range(10):
        await noisy.client.submit(session, "chunks 20000 40 1", f"chat-{number}")


async def event_pages(noisy: Noisy) -> None:
    session = await noisy.once("long", lambda: long_log(noisy))
    await noisy.expect(200, "GET", f"/sessions/{session}/events?after=0&limit=1000")


READERS = (
    Way("readers that do not read", "15 of them, of a message of 24 MiB", read_nothing, 15, prepare_big),
    Way("readers from the start", "10 read 50,000 events each", read_from_the_start, 10, prepare_long),
    Way("reconnects", "20 readers that come and leave at once", reconnect, 20, prepare_long),
    Way("many listeners", "100 readers of an agent that talks without an end", listen_to_chatter, 100),
    Way("pages of events", "pages of 1,000 events", event_pages, 8, prepare_long),
)
