"""Sends the head of an answer together with the beginning of its body, where both are there at once.

uvicorn hands them over one after the other, and each is a system call that wakes the client up.
"""

import asyncio
from typing import Final

LARGE_BYTES: Final = 1 << 16
"""More than this is not copied behind a head."""


class JoinedHead:
    """The transport of one answer, as far as whoever writes the answer uses it."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head: bytes | None = None
        self._is_begun = False

    def write(self, data: bytes) -> None:
        if not self._is_begun:
            self._is_begun, self._head = True, data
            self._loop.call_soon(self._flush)  # a stream may have nothing to say for a long time
            return
        head, self._head = self._head, None
        if head is None:
            self._transport.write(data)
        elif len(data) > LARGE_BYTES:
            self._transport.write(head)
            self._transport.write(data)
        else:
            self._transport.write(head + data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def _flush(self) -> None:
        head, self._head = self._head, None
        if head is not None:
            self._transport.write(head)
