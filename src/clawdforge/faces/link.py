"""The way to the server: a client of it, found again when the server was lost or came back elsewhere."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from clawdforge.client import AsyncForge
from clawdforge.client.errors import ForgeConnectionError, ForgeError

T = TypeVar("T")
Reach = Callable[[], tuple[str, str]]
"""Where the server is by now, and the token for it. It may block, and start one; raises ForgeError."""

Connect = Callable[[str, str], AsyncForge]
"""Makes a client of the server at this address, with this token."""

LOOK_SECS: Final = 2.0
"""How long a stream may be silent before we look whether the server has come back elsewhere."""

PAUSE_SECS: Final = 0.5
PATIENCE_SECS: Final = 300.0
"""How long a server may stay away before whoever waits for it is told."""


class Link:
    """One client at a time, shared by all that a program asks for."""

    def __init__(
        self, reach: Reach, patience_secs: float = PATIENCE_SECS, connect: Connect | None = None
    ) -> None:
        self._reach = reach
        self._make = connect or _dial
        self._patience = patience_secs
        self._forge: AsyncForge | None = None
        self._looking = asyncio.Lock()

    async def open(self) -> AsyncForge:
        """The client, made with the first call."""
        async with self._looking:
            if self._forge is None:
                self._forge = await self._connect()
            return self._forge

    async def repeat(self, call: Callable[[AsyncForge], Awaitable[T]], *, once: bool = False) -> T:
        """What a server answers, asked again while none does; with `once`, only if nobody can have heard."""
        until = time.monotonic() + self._patience
        while True:
            forge = await self.open()
            try:
                return await call(forge)
            except ForgeConnectionError as error:
                if (once and error.sent) or time.monotonic() > until:
                    raise
            await self.find_again(forge)

    async def find_again(self, lost: AsyncForge) -> None:
        """Look for the server until it is there. Whoever comes second finds it found."""
        until = time.monotonic() + self._patience
        async with self._looking:
            while self._forge is lost:
                try:
                    found = await self._connect()
                    await found.healthz()
                except ForgeError as error:
                    if time.monotonic() > until:
                        raise ForgeError(f"the server did not come back: {error}") from error
                    await asyncio.sleep(PAUSE_SECS)
                else:
                    self._forge = found  # the old one may still be read from, and goes with its last reader

    async def close(self) -> None:
        if self._forge is not None:
            await self._forge.close()

    async def _connect(self) -> AsyncForge:
        url, token = await asyncio.to_thread(self._reach)
        return self._make(url, token)


def _dial(url: str, token: str) -> AsyncForge:
    return AsyncForge(url, token, reconnect_secs=LOOK_SECS)
