"""Sends one message to one receiver of webhooks: resolves, checks, and connects to that very address.

Public addresses are reached over TLS; others, and plain HTTP, only where the operator has listed them. No
redirect is followed, and of an answer nothing is kept but its status and when to come again. The request is
written by hand: what stands between the look-up of a name and the connection is the point of it all.
"""

import asyncio
import contextlib
import re
import socket
import ssl
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from clawdforge import __version__
from clawdforge.core.ports.webhooks import Answer, Undelivered
from clawdforge.wire.hosts import Address, AllowedHosts, is_public, read_address
from clawdforge.wire.webhooks import PORTS, read_place

ALL_SECS: Final = 15.0
CONNECT_SECS: Final = 5.0
REST_SECS: Final = 1.0
MOST_ADDRESSES: Final = 3
MAX_HEAD: Final = 1 << 15
MOST_HEADS: Final = 8
"""Of one answer: those that say that it will come, and its own."""
MAX_REST: Final = 1 << 16
STATUS: Final = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})(?: [^\r\n]*)?\r\n")
RETRY_AFTER: Final = re.compile(rb"\r\nretry-after:[ \t]*([0-9]{1,9})[ \t]*\r\n", re.IGNORECASE)
"""In seconds; its other form, a date, is not read, since clocks differ."""
RESOLVERS: Final = 16
"""Threads of its own, since a name's server may take long to answer: one for each delivery that is under way.
A look-up cannot be ended, so a delivery waits for the end of its own, and keeps no thread from the others."""


class Outbound:
    def __init__(self, hosts: AllowedHosts) -> None:
        self._hosts = hosts
        self._threads = ThreadPoolExecutor(RESOLVERS, thread_name_prefix="webhooks")
        self._tls: ssl.SSLContext | None = None

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def check(self, url: str) -> None:
        """Raises Undelivered for what can be seen never to be allowed."""
        scheme, host, port, _ = read_place(url)
        is_listed, address = self._hosts.allows(host, port), read_address(host)
        if scheme == "http" and not is_listed:
            raise Undelivered(
                f"use https://, or have the operator list {host}:{port} in CLAWDFORGE_WEBHOOK_HOSTS"
            )
        if address is not None and not (is_listed or is_public(address)):
            raise Undelivered(_refusal(host, port))

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        self.check(url)
        _, host, port, _ = read_place(url)
        addresses = await self._resolve(host, port)
        try:
            async with asyncio.timeout(ALL_SECS):
                return await self._post(url, addresses, headers, body)
        except TimeoutError as error:
            raise Undelivered(f"it did not answer within {ALL_SECS:g} s") from error

    async def _post(
        self, url: str, addresses: Sequence[Address], headers: Mapping[str, str], body: bytes
    ) -> Answer:
        scheme, host, port, target = read_place(url)
        allowed = [one for one in addresses if self._hosts.allows_address(one, port)]
        if not allowed:
            raise Undelivered(_refusal(host, port))
        tls = await self._find_tls() if scheme == "https" else None
        reader, writer = await _connect(allowed[:MOST_ADDRESSES], host, port, tls)
        try:
            shown = f"[{host}]" if ":" in host else host
            lines = {
                "host": shown if port == PORTS[scheme] else f"{shown}:{port}",
                "user-agent": f"clawdforge/{__version__}",
                "content-length": str(len(body)),
                "connection": "close",
                **headers,
            }
            head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
            writer.write(f"POST {target} HTTP/1.1\r\n{head}\r\n".encode("ascii") + body)
            await writer.drain()
            return await _read_answer(reader)
        except asyncio.IncompleteReadError as error:
            raise Undelivered("it closed the connection before it answered") from error
        except asyncio.LimitOverrunError as error:
            raise Undelivered("its answer is not HTTP, or its head is too long") from error
        except OSError as error:
            raise Undelivered(f"the connection broke: {_describe(error)}") from error
        finally:
            writer.transport.abort()  # whatever is still to be sent or read is of no use

    async def _resolve(self, host: str, port: int) -> Sequence[Address]:
        literal = read_address(host)
        if literal is not None:
            return (literal,)
        loop = asyncio.get_running_loop()
        try:
            found = await loop.run_in_executor(
                self._threads, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            )
        except (OSError, UnicodeError) as error:
            raise Undelivered(f"{host} has no address") from error
        addresses = [read_address(str(place[0]).partition("%")[0]) for *_, place in found]
        return tuple(dict.fromkeys(address for address in addresses if address is not None))

    async def _find_tls(self) -> ssl.SSLContext:
        """Made once, in a thread: it reads the certificates of this machine."""
        if self._tls is None:
            loop = asyncio.get_running_loop()
            self._tls = await loop.run_in_executor(self._threads, ssl.create_default_context)
        return self._tls


@contextlib.contextmanager
def open_outbound(hosts: Iterable[str]) -> Iterator[Outbound]:
    """`hosts` are those that the operator has listed."""
    outbound = Outbound(AllowedHosts.read(hosts))
    try:
        yield outbound
    finally:
        outbound.close()


async def _connect(
    addresses: Sequence[Address], host: str, port: int, tls: ssl.SSLContext | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """To one of these addresses, and no other; the certificate must be the host's."""
    problem = "no answer"
    for address in addresses:
        try:
            async with asyncio.timeout(CONNECT_SECS):
                return await asyncio.open_connection(
                    str(address), port, ssl=tls, server_hostname=host if tls else None, limit=MAX_HEAD
                )
        except TimeoutError:
            problem = "it took too long"
        except (OSError, ValueError) as error:  # ValueError: a name that no certificate can have
            problem = _describe(error)
    raise Undelivered(f"{host}:{port} cannot be reached: {problem}")


async def _read_answer(reader: asyncio.StreamReader) -> Answer:
    """The answer itself, after those that only say that it will come."""
    for _ in range(MOST_HEADS):
        head = await reader.readuntil(b"\r\n\r\n")
        found = STATUS.match(head)
        if found is None:
            raise Undelivered("its answer is not HTTP")
        status = int(found[1])
        if status >= 200:
            break
    else:
        raise Undelivered("it only said, again and again, that an answer would come")
    with contextlib.suppress(TimeoutError, OSError):  # a receiver that is still sending is not cut off
        async with asyncio.timeout(REST_SECS):
            left = MAX_REST
            while left > 0 and (piece := await reader.read(left)):
                left -= len(piece)
    asked = RETRY_AFTER.search(head)
    return Answer(status, int(asked[1]) if asked else None)


def _refusal(host: str, port: int) -> str:
    return (
        f"{host} is not a public address; the operator can allow it with CLAWDFORGE_WEBHOOK_HOSTS,"
        f" by the address itself and the port {port}"
    )


def _describe(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not good: {error.verify_message}"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return str(error)
