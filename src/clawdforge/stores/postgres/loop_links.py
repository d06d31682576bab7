"""Connections to Postgres in the server's own event loop, for whoever only asks one thing.

To hand a question to a thread and its answer back takes longer than the question does.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import asyncpg

from clawdforge.stores.postgres.link import LOST, PATIENCE_SECS, connect
from clawdforge.wire.errors import Stopping

MOST: Final = 2
"""Whoever comes when all are used waits."""


class LoopLinks:
    """Opened when they are needed; those that were lost while nobody used them are thrown away."""

    def __init__(self, url: str, patience: float = PATIENCE_SECS) -> None:
        self._url = url
        self._patience = patience
        self._idle: list[asyncpg.Connection] = []
        self._room = asyncio.Semaphore(MOST)
        self._is_closed = False

    async def fetch(self, sql: str, args: Sequence[Any]) -> Sequence[Sequence[Any]]:
        """Raises one of `LOST` when there is no answer in time, with the time in line.

        A question that was sent is answered even if nobody waits any more, since the connection is kept: a
        new one costs more than any question.
        """
        async with asyncio.timeout(self._patience):
            await self._room.acquire()
            asking = asyncio.ensure_future(self._ask(sql, args))
            asking.add_done_callback(self._leave)
            return await asyncio.shield(asking)

    async def close(self) -> None:
        """What was sent is still answered; whoever waits in line is told."""
        self._is_closed = True
        for _ in range(MOST):
            await self._room.acquire()
        self._end_idle()
        for _ in range(MOST):
            self._room.release()

    async def _ask(self, sql: str, args: Sequence[Any]) -> Sequence[Sequence[Any]]:
        while not self._is_closed:
            idle = self._idle.pop() if self._idle else None
            connection = idle or await connect(self._url, self._patience)
            try:
                rows: Sequence[Sequence[Any]] = await connection.fetch(sql, *args)
            except LOST as error:
                connection.terminate()
                if idle is None or isinstance(error, TimeoutError):
                    raise
                self._end_idle()  # else each of them would be waited for
            except BaseException:  # the answer may still be on its way
                connection.terminate()
                raise
            else:
                self._idle.append(connection)
                return rows
        raise Stopping

    def _leave(self, asked: "asyncio.Future[Any]") -> None:
        self._room.release()
        if not asked.cancelled():
            asked.exception()  # whoever stopped waiting does not ask for it

    def _end_idle(self) -> None:
        while self._idle:
            self._idle.pop().terminate()
