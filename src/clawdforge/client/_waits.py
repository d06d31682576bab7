"""The two ways to wait: one blocks the thread, one gives the loop away."""

import asyncio
import time
from pathlib import Path
from typing import BinaryIO


def sleep(seconds: float) -> None:
    time.sleep(seconds)


async def async_sleep(seconds: float) -> None:
    await asyncio.sleep(seconds)


def open_file(path: Path, mode: str) -> BinaryIO:
    return path.open(mode)  # type: ignore[return-value]


async def async_open_file(path: Path, mode: str) -> BinaryIO:
    return await asyncio.to_thread(open_file, path, mode)


def write(file: BinaryIO, data: bytes) -> int:
    return file.write(data)


async def async_write(file: BinaryIO, data: bytes) -> int:
    return await asyncio.to_thread(write, file, data)
