"""Connections to Postgres in the server's own event loop, for whoever only asks one thing.

To hand a question to a thread and its answer back takes longer than the question does.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import asyncpg

from clawdforge.stores.postgres.link import LOST, connect
from clawdforge.wire.errors import Stopping

MOST: Final = 2
"""Whoever comes when all are used waits."""


class LoopLinks:
    """Opened when they are needed; those that were lost while nobody used them are thrown away."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._idle: list[asyncpg.Connection] = []
        self._room = asyncio.Semaphore(MOST)
        self._is_closed = False

    async def fetch(self, sql: str, args: Sequence[Any]) -> Sequence[Sequence[Any]]:
        """Who stops waiting leaves the connection to the next, once the answer has come: a new one costs more
        than any question."""
        return await asyncio.shield(self._fetch(sql, args))

    async def _fetch(self, sql: str, args: Sequence[Any]) -> Sequence[Sequence[Any]]:
        async with self._room:
            while True:
                if self._is_closed:
                    raise Stopping
                idle = self._idle.pop() if self._idle else None
                connection = idle or await connect(self._url)
                try:
                    rows: Sequence[Sequence[Any]] = await connection.fetch(sql, *args)
                except LOST:
                    connection.terminate()
                    if idle is None:
                        raise
                    self._end_idle()  # else each of them would be waited for
                except BaseException:  # the answer may still be on its way
                    connection.terminate()
                    raise
                else:
                    self._idle.append(connection)
                    return rows

    async def close(self) -> None:
        """What was asked is still answered; whoever comes later is told."""
        for _ in range(MOST):
            await self._room.acquire()
        self._is_closed = True
        self._end_idle()
        for _ in range(MOST):
            self._room.release()

    def _end_idle(self) -> None:
        while self._idle:
            self._idle.pop().terminate()
