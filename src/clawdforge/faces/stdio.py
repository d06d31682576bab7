"""Our own standard streams as a connection reads and writes them; nothing but frames goes out."""

import asyncio
import os
import sys
from collections.abc import Sequence
from typing import Final

READ_BYTES: Final = 256 * 1024
CLOSE_SECS: Final = 2.0
"""How long an editor may take to read the last of what we said."""

STDOUT: Final = 1
STDERR: Final = 2


class OwnStdio:
    """What an editor that started us writes and reads."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls) -> "OwnStdio":
        """Takes stdout for itself: whatever else prints does so on stderr. ValueError if one is a file."""
        loop = asyncio.get_running_loop()
        sys.stdout.flush()
        out = os.fdopen(os.dup(STDOUT), "wb", 0)
        os.dup2(STDERR, STDOUT)
        reader = asyncio.StreamReader(limit=READ_BYTES)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, out)
        return cls(reader, asyncio.StreamWriter(transport, protocol, None, loop))

    async def read(self) -> bytes:
        return await self._reader.read(READ_BYTES)

    async def write(self, pieces: Sequence[bytes]) -> None:
        if self._writer.is_closing():
            raise BrokenPipeError
        for piece in pieces:
            self._writer.write(piece)
        await self._writer.drain()

    def unread(self) -> int:
        return 0

    async def close(self) -> None:
        """Let out what was written, if it is still read: we must not outlive an editor that is gone."""
        try:
            async with asyncio.timeout(CLOSE_SECS):
                await self._writer.drain()
        except OSError:  # also when the time is over
            self._writer.transport.abort()
        else:
            self._writer.close()
