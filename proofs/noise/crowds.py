"""Ways of a crowd: connections that are opened and not used, requests without number, guessed tokens."""

import asyncio

from proofs.kit.http import head
from proofs.noise.way import UNKNOWN, Noisy, Way

HALF = b"GET /sessions HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
LOGIN_BYTES = 1 << 20
AT_ONCE = 16


async def half_open(noisy: Noisy) -> None:
    """Hold a connection whose headers never end, until the door turns it out."""
    reader, writer = await noisy.connect()
    writer.write(HALF)
    noisy.bite()
    await noisy.wait_hung_up(reader)
    noisy.count["turned out"] += 1
    noisy.writers.discard(writer)
    writer.close()


async def slow_body(noisy: Noisy) -> None:
    """A byte of a body now and then, with a good token."""
    reader, writer = await noisy.connect()
    ask = head("POST", "/sessions", noisy.token, b"", {"Content-Length": "1000000"})
    writer.write(ask.replace(b"Content-Length: 0\r\n", b""))
    waiting = asyncio.create_task(noisy.wait_hung_up(reader))
    while not waiting.done():
        writer.write(b" ")
        noisy.bite()
        await asyncio.wait([waiting], timeout=0.2)
    noisy.writers.discard(writer)
    writer.close()


async def login_flood(noisy: Noisy) -> None:
    """Large bodies from nobody, and small ones with a wrong token."""
    large = b'{"token":"' + b"x" * LOGIN_BYTES + b'"}'
    reply = await noisy.call("POST", "/login", token="", data=large)
    noisy.bite(reply is None or reply.status in (401, 413))
    await noisy.call("POST", "/login", {"token": UNKNOWN}, token="")


async def held_login(noisy: Noisy) -> None:
    """The body of a login that is declared large and never comes to its end."""
    reader, writer = await noisy.connect()
    ask = head("POST", "/login", "", b"", {"Content-Length": str(30 << 20)})
    writer.write(ask.replace(b"Content-Length: 0\r\n", b"") + b'{"token":"' + b"x" * (1 << 16))
    noisy.bite()
    await noisy.wait_hung_up(reader)
    noisy.writers.discard(writer)
    writer.close()


async def token_guesses(noisy: Noisy) -> None:
    guess = f"cf_{noisy.random.getrandbits(256):064x}"
    await noisy.expect(401, "GET", "/sessions", token=guess)


async def request_crowd(noisy: Noisy) -> None:
    """Hundreds of cheap requests of one app at once."""
    session = await noisy.once("session", noisy.session)
    await noisy.expect(200, "GET", f"/sessions/{session}")


async def reset_storm(noisy: Noisy) -> None:
    """Connect, ask, and hang up without reading."""
    ask = head("GET", "/sessions", noisy.token, None, {})
    for _ in range(AT_ONCE):
        _, writer = await asyncio.open_connection("127.0.0.1", noisy.port)
        writer.write(ask)
        writer.transport.abort()
        noisy.bite()


async def pipeline(noisy: Noisy) -> None:
    """One connection, many requests sent before the first is answered."""
    ask = head("GET", "/sessions", noisy.token, None, {}).replace(b"Connection: close\r\n", b"")
    reader, writer = await noisy.connect()
    writer.write(ask * 100)
    for _ in range(100):
        await reader.readuntil(b"HTTP/1.1 ")
        noisy.bite()
    noisy.writers.discard(writer)
    writer.transport.abort()


CROWDS = (
    Way("half-open requests", "600 connections whose headers never end", half_open, hands=600, bites=100),
    Way("slow bodies", "100 bodies, a byte at a time", slow_body, hands=100, bites=100),
    Way("login flood", "logins with 1 MiB of nothing", login_flood, hands=8),
    Way("held logins", "60 logins of 30 MiB that do not come to their end", held_login, hands=60),
    Way("token guesses", "requests with guessed tokens", token_guesses, hands=32),
    Way("request crowd", "200 requests of one app at any time", request_crowd, hands=200, bites=100),
    Way("hang-ups", "requests whose caller is gone at once", reset_storm),
    Way("pipelines", "100 requests before the first answer", pipeline, bites=100),
)
