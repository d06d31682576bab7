"""Pipes from an agent's process: the launcher's status pipe, and the tail of stderr."""

import asyncio
import contextlib
import os
from collections.abc import Coroutine, Iterator
from typing import Any

STDERR_TAIL = 64 * 1024


class Tail(asyncio.Protocol):
    """Reads everything and keeps only the end, so that an agent that writes a lot is never blocked."""

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
    """A pipe's reading and writing end. The reading end stays open, unless the block fails."""
    reader, writer = os.pipe()
    try:
        yield reader, writer
    except BaseException:
        os.close(reader)
        raise
    finally:
        os.close(writer)


async def run_to_end(work: Coroutine[Any, Any, None]) -> None:
    """Run the work to its end even when cancelled; the cancel is raised afterwards.

    An event loop that is interrupted while it connects a pipe closes the descriptor, and then the pipe object
    closes the same number again, which may belong to another agent by then.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


async def wait_readable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(fd, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(fd)


async def read_all(fd: int) -> bytes:
    data = b""
    while True:
        await wait_readable(fd)
        chunk = os.read(fd, 64)
        if not chunk:
            return data
        data += chunk
