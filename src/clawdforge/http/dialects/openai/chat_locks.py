"""Lets one request at a time look for the session of a chat and make it: two at once would make two."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class ChatLocks:
    """A lock for each chat that somebody is looking for just now; nothing is kept of the others."""

    def __init__(self) -> None:
        self._locks: dict[tuple[str, str], tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def hold(self, app: str, chat: str | None) -> AsyncIterator[None]:
        if chat is None:
            yield
            return
        key = app, chat
        lock, users = self._locks.get(key) or (asyncio.Lock(), 0)
        self._locks[key] = lock, users + 1
        try:
            async with lock:
                yield
        finally:
            lock, users = self._locks.pop(key)
            if users > 1:
                self._locks[key] = lock, users - 1
