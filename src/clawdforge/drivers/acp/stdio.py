"""The streams of an agent's process, as a connection reads and writes them."""

import asyncio
from collections.abc import Sequence
from typing import Final

from clawdforge.drivers.processes.pipes import Output

READ_BYTES: Final = 256 * 1024


class StdioPipe:
    """The streams of a process."""

    def __init__(self, stdout: Output, stdin: asyncio.StreamWriter) -> None:
        self._stdout = stdout
        self._stdin = stdin

    async def read(self) -> bytes:
        return await self._stdout.read(READ_BYTES)

    async def write(self, pieces: Sequence[bytes]) -> None:
        if self._stdin.is_closing():
            raise BrokenPipeError
        for piece in pieces:  # without a pause: nobody else's line may come in between
            self._stdin.write(piece)
        await self._stdin.drain()

    def unread(self) -> int:
        return self._stdout.unread()
