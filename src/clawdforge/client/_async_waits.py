"""Waiting that gives the loop away; `_waits` has the same for a thread."""

import asyncio
from pathlib import Path
from typing import BinaryIO

from clawdforge.client import _waits


async def sleep(seconds: float) -> None:
    await asyncio.sleep(seconds)


async def open_file(path: Path, mode: str) -> BinaryIO:
    return await asyncio.to_thread(_waits.open_file, path, mode)


async def write(file: BinaryIO, data: bytes) -> int:
    return await asyncio.to_thread(_waits.write, file, data)
