"""Waiting that gives the loop away; `_waits` has the same for a thread."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

from clawdforge.client import _waits

T = TypeVar("T")
Lock = asyncio.Lock
FINDS_AT_ONCE: Final = False
"""A server is found, or started, when it is first needed: whoever makes a client cannot await."""


async def sleep(seconds: float) -> None:
    await asyncio.sleep(seconds)


async def run(work: Callable[[], T]) -> T:
    return await asyncio.to_thread(work)


async def resolve(value: T | Awaitable[T]) -> T:
    """What a caller's own function answered, whether it awaits or not."""
    return await value if isinstance(value, Awaitable) else value


async def open_file(path: Path, mode: str) -> BinaryIO:
    return await asyncio.to_thread(_waits.open_file, path, mode)


async def write(file: BinaryIO, data: bytes) -> int:
    return await asyncio.to_thread(_waits.write, file, data)
