"""Pipes to an agent: the one on which its launcher speaks, and the end of what it says on stderr."""

import asyncio
import contextlib
import os
from collections.abc import Coroutine, Iterator
from typing import Any

STDERR_TAIL = 64 * 1024


class Tail(asyncio.Protocol):
    """Reads all there is and keeps the end of it, so that a chatty agent never stands still."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self.ended = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self._kept += data[-STDERR_TAIL:]
        if len(self._kept) > 2 * STDERR_TAIL:
            del self._kept[:-STDERR_TAIL]

    def connection_lost(self, _error: Exception | None) -> None:
        self.ended.set()

    def text(self) -> str:
        return self._kept[-STDERR_TAIL:].decode(errors="replace")


@contextlib.contextmanager
def status_pipe() -> Iterator[tuple[int, int]]:
    """Its reading end is left open, unless what is done inside fails."""
    reader, writer = os.pipe()
    try:
        yield reader, writer
    except BaseException:
        os.close(reader)
        raise
    finally:
        os.close(writer)


async def to_the_end(work: Coroutine[Any, Any, None]) -> None:
    """A cancel waits until it is done.

    A loop that breaks off connecting a pipe closes its descriptor, and the pipe's own object closes that
    number once more: by then it may be another agent's.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


async def until_readable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(fd, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(fd)


async def read_all(fd: int) -> bytes:
    said = b""
    while True:
        await until_readable(fd)
        chunk = os.read(fd, 64)
        if not chunk:
            return said
        said += chunk
