"""Pipes from an agent's process: its output, the tail of its stderr, and the launcher's status pipe."""

import asyncio
import contextlib
import fcntl
import os
import struct
import termios
from collections.abc import Coroutine, Iterable, Iterator
from typing import IO, Any, SupportsIndex

STDERR_TAIL = 64 * 1024


class Output(asyncio.StreamReader):
    """What a program writes, and how much of it nobody has read yet."""

    def __init__(self, pipe: IO[bytes], limit: int) -> None:
        super().__init__(limit=limit)
        self._pipe = pipe
        self._waiting = 0

    def feed_data(self, data: Iterable[SupportsIndex]) -> None:
        came = bytes(data)
        self._waiting += len(came)
        super().feed_data(came)

    async def read(self, n: int = -1) -> bytes:
        data = await super().read(n)
        if n >= 0:  # without a number it comes back here, piece by piece
            self._waiting -= len(data)
        return data

    def unread(self) -> int:
        """Bytes that were written and not read, those in the kernel's hands included."""
        return self._waiting + (0 if self._pipe.closed else _bytes_in(self._pipe.fileno()))


def _bytes_in(fd: int) -> int:
    count = struct.pack("i", 0)
    return int(struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, count))[0])


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
        while not task.done():  # whoever breaks off may do so again and again
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # marks it as seen: nobody waits for it any more
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
