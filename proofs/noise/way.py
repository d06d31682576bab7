"""A way to be noisy: what an app does over and over, and how it is known that it really did it."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proofs.kit.client import Client
from proofs.kit.http import Cut, Reply, request

UNKNOWN = "cf_nobody_has_this_token_0123456789abcdef"


@dataclass
class Noisy:
    """One app that is about to be noisy. `full` says whether there is time for large things."""

    port: int
    token: str
    folder: Path
    seed: int
    full: bool
    count: Counter[str] = field(default_factory=Counter)
    kept: dict[str, Any] = field(default_factory=dict)
    """What one hand has made for all."""

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.client = Client(self.port, self.token)
        self.writers: set[asyncio.StreamWriter] = set()

    def size(self, full: int, short: int) -> int:
        return full if self.full else short

    def bite(self, times: int = 1) -> None:
        """The noise has arrived where it was to arrive."""
        self.count["bites"] += times

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = None,
        data: bytes | None = None,
        headers: dict[str, str] | None = None,
        seconds: float = 60,
    ) -> Reply | None:
        """An answer, or None where the server hung up, which it may do with somebody like this."""
        try:
            reply = await request(
                self.port,
                method,
                path,
                self.token if token is None else token,
                body=body,
                data=data,
                headers=headers,
                seconds=seconds,
            )
        except Cut:
            self.count["hung up"] += 1
            return None
        self.count[str(reply.status)] += 1
        return reply

    async def expect(self, status: int, method: str, path: str, body: Any = None, **more: Any) -> Any:
        """Bite if the answer is this one; being told to come again later is one as well."""
        reply = await self.call(method, path, body, **more)
        if reply is not None and reply.status in (status, 429):
            self.bite()
            return reply.json() if reply.ok else None
        if reply is not None:
            self.count[f"unexpected: {reply.body[:200]!r}"] += 1
        return None

    async def session(self, **body: Any) -> str:
        return await self.client.session(retention="keep", **body)

    async def once(self, name: str, make: Callable[[], Awaitable[Any]]) -> Any:
        """What all hands share is made by the first."""
        if name not in self.kept:
            self.kept[name] = asyncio.ensure_future(make())
        return await asyncio.shield(self.kept[name])

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection that lasts until the noise is over, unless the server ends it."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 16)
        self.writers.add(writer)
        return reader, writer

    async def wait_hung_up(self, reader: asyncio.StreamReader) -> None:
        with suppress(OSError, EOFError):
            while await reader.read(4096):
                pass

    def hang_up(self) -> None:
        for writer in self.writers:
            writer.transport.abort()
        self.writers.clear()


@dataclass(frozen=True, slots=True)
class Way:
    """`act` is done by so many hands at once, again and again; `prepare` first, and by one of them."""

    name: str
    story: str
    act: Callable[[Noisy], Awaitable[None]]
    hands: int = 4
    prepare: Callable[[Noisy], Awaitable[Any]] | None = None
    bites: int = 1
    """So many there must be."""
