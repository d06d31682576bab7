"""A way to a host out of a network in which only an HTTP proxy is: a port of our own that leads through it.

Programs that speak HTTP use the proxy by themselves; Postgres does not.
"""

import asyncio
from contextlib import AsyncExitStack
from functools import partial
from typing import Final
from urllib.parse import urlsplit

SECONDS: Final = 15.0
PIECE: Final = 64 * 1024
MAX_HEAD: Final = 32 * 1024
LOOPBACK: Final = "127.0.0.1"


async def find_way(host: str, port: int, proxy: str, stack: AsyncExitStack) -> tuple[str, int] | None:
    """None where the host can be reached as it is; else an end that leads there as long as the stack lives.

    OSError where there is no way.
    """
    try:
        async with asyncio.timeout(SECONDS):
            _, writer = await asyncio.open_connection(host, port)
    except OSError:  # a timeout too
        if not proxy:
            raise
        (await _connect(host, port, proxy))[1].close()
    else:
        writer.close()
        return None
    server = await asyncio.start_server(partial(_serve, host, port, proxy), LOOPBACK, 0)
    stack.callback(server.close)
    return LOOPBACK, int(server.sockets[0].getsockname()[1])


async def _connect(host: str, port: int, proxy: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    place = urlsplit(proxy)
    shown = f"[{host}]" if ":" in host else host
    async with asyncio.timeout(SECONDS):
        reader, writer = await asyncio.open_connection(place.hostname, place.port or 80, limit=MAX_HEAD)
        try:
            writer.write(f"CONNECT {shown}:{port} HTTP/1.1\r\nHost: {shown}:{port}\r\n\r\n".encode())
            await _read_answer(reader)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            writer.close()
            raise ConnectionResetError("the proxy has hung up") from error
        except BaseException:
            writer.close()
            raise
    return reader, writer


async def _read_answer(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    if head.split(b" ", 2)[1:2] != [b"200"]:
        words = (await reader.read(PIECE)).decode(errors="replace").strip()
        raise ConnectionRefusedError(words or "the proxy refuses it")


async def _serve(
    host: str, port: int, proxy: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    try:
        answers, upstream = await _connect(host, port, proxy)
    except OSError:
        writer.close()
        return
    try:
        async with asyncio.TaskGroup() as both:
            both.create_task(_copy(reader, upstream))
            both.create_task(_copy(answers, writer))
    except* OSError:
        pass  # one of the two has hung up
    finally:
        upstream.close()
        writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(PIECE):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
