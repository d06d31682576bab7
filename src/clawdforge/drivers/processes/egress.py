"""The way out of an agent's own network: an HTTP proxy that knows which hosts this agent may reach.

It answers on a socket that the launcher has opened inside of the agent's network and sent to us, so whoever
asks there is this agent or one of its children, and there is nothing else to talk to. A name is resolved here
and its address checked after that; the connection goes to that very address. What travels through is not
looked at: with `CONNECT` it is encrypted.
"""

import asyncio
import contextlib
import logging
import re
import socket
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from clawdforge.wire.hosts import Address, AllowedHosts, read_address

log = logging.getLogger(__name__)

MAX_HEAD: Final = 32 * 1024
MAX_CONNECTIONS: Final = 256
MAX_LOGGED: Final = 100
HEAD_SECONDS: Final = 60.0
CONNECT_SECONDS: Final = 20.0
PIECE: Final = 64 * 1024
REQUEST_LINE: Final = re.compile(rb"([A-Z]{1,20}) ([\x21-\x7e]{1,8000}) HTTP/1\.[01]")
HOP_BY_HOP: Final = (b"connection", b"proxy-connection", b"proxy-authorization", b"keep-alive", b"host")


class Refused(Exception):
    """An answer instead of a connection: the status, and the words for the agent."""

    def __init__(self, status: str, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for; `head` is what the host gets to read, nothing for a tunnel."""

    host: str
    port: int
    head: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """Whose way out it is, and what it may reach. `own_port` is the server's, which no agent reaches."""

    agent: str
    session: str
    hosts: AllowedHosts
    own_port: int | None = None


class Egress:
    """The proxy of one agent process."""

    def __init__(self, way_out: Exit, resolver: Executor) -> None:
        self._exit = way_out
        self._resolver = resolver
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()
        self._logged: set[str] = set()

    async def start(self, listener: socket.socket) -> None:
        self._server = await asyncio.start_server(self._serve, sock=listener, limit=MAX_HEAD)

    @property
    def is_open(self) -> bool:
        return self._server is not None and self._server.is_serving()

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._open.add(task)
            task.add_done_callback(self._open.discard)
        try:
            await self._answer(reader, writer)
        except Refused as refused:
            with contextlib.suppress(OSError):
                writer.write(_reply(refused.status, str(refused)))
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass  # whoever asked has gone, or the host has
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) > MAX_CONNECTIONS:
            raise Refused("503 Service Unavailable", f"more than {MAX_CONNECTIONS} connections at once")
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError as error:
            raise Refused("431 Request Header Fields Too Large", "the head is too long") from error
        request = read_request(head)
        answers, upstream = await self._connect(request)
        try:
            if request.head:
                upstream.write(request.head)
            else:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            async with asyncio.TaskGroup() as both:
                both.create_task(_copy(reader, upstream))
                both.create_task(_copy(answers, writer))
        except* OSError:
            pass  # one of the two has hung up
        finally:
            upstream.close()

    async def _connect(self, request: Request) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, port = request.host, request.port
        if not self._exit.hosts.allows(host, port):
            raise self._refuse(f"{_shown(host)}:{port}", f"{_shown(host)}:{port}")
        addresses = await self._resolve(host, port)  # never empty
        allowed = [one for one in addresses if self._exit.hosts.allows_address(one, port)]
        if not allowed:
            place = _shown(str(addresses[0]))
            about = f"{host}:{port}, which leads to {place}: that is not a public address"
            raise self._refuse(about, f"{place}:{port}")
        if port == self._exit.own_port and any(_is_ours(address) for address in allowed):
            raise Refused("403 Forbidden", "that is the server's own port, which agents do not reach")
        problem = "no answer"
        for address in allowed:
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    return await asyncio.open_connection(str(address), port, limit=PIECE)
            except OSError as error:  # a timeout too
                problem = str(error) or "it took too long"
        raise Refused("502 Bad Gateway", f"{host}:{port} cannot be reached: {problem}")

    async def _resolve(self, host: str, port: int) -> Sequence[Address]:
        literal = read_address(host)
        if literal is not None:
            return (literal,)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                found = await loop.run_in_executor(
                    self._resolver, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
                )
        except (OSError, UnicodeError) as error:
            raise Refused("502 Bad Gateway", f"{host} has no address: {error}") from error
        addresses = [read_address(str(place[0]).partition("%")[0]) for *_, place in found]
        return tuple(dict.fromkeys(address for address in addresses if address is not None))

    def _refuse(self, about: str, entry: str) -> Refused:
        name = self._exit.agent
        text = f'{name} may not reach {about}; to allow it, add "{entry}" to `hosts` of [agents.{name}]'
        if entry not in self._logged and len(self._logged) < MAX_LOGGED:
            self._logged.add(entry)
            log.warning("%s", text, extra={"session_id": self._exit.session})
        return Refused("403 Forbidden", text)


def read_request(head: bytes) -> Request:
    """`CONNECT host:port`, or a request with a whole URL. Raises Refused."""
    line, *fields = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    found = REQUEST_LINE.fullmatch(line)
    if found is None:
        raise Refused("400 Bad Request", "this is a proxy: it takes CONNECT, or a request with a whole URL")
    method, target = found[1], found[2].decode("ascii")
    try:
        parts = urlsplit(f"//{target}" if method == b"CONNECT" else target)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise Refused("400 Bad Request", "that is not an address") from error
    if method == b"CONNECT":
        if not host or port is None:
            raise Refused("400 Bad Request", "CONNECT takes host:port")
        return Request(host, port, b"")
    if parts.scheme != "http" or not host:
        raise Refused("400 Bad Request", "this is a proxy: it takes CONNECT, or a request for http://…")
    path = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
    at = parts.netloc.rpartition("@")[2].encode()
    kept = [field for field in fields if field.partition(b":")[0].strip().lower() not in HOP_BY_HOP]
    start = [method + b" " + path.encode() + b" HTTP/1.1", b"Host: " + at, b"Connection: close"]
    return Request(host, port or 80, b"\r\n".join([*start, *kept, b"", b""]))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(PIECE):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


def _is_ours(address: Address) -> bool:
    """Whether it is an address of this machine: only then can something be bound to it."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
        probe.bind((str(address), 0))
        return True
    return False


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _reply(status: str, text: str) -> bytes:
    body = f"{text}\n".encode()
    fields = f"Content-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\nConnection: close"
    return f"HTTP/1.1 {status}\r\n{fields}\r\n\r\n".encode() + body
