"""Waiting for one thing while watching for others: hang-ups, ends, and letting go of generators."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from starlette.types import Receive

T = TypeVar("T")


@asynccontextmanager
async def closing(items: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """Let go of what a generator holds as soon as nobody wants its next item."""
    try:
        yield items
    finally:
        if isinstance(items, AsyncGenerator):
            await items.aclose()


async def first(*waits: Awaitable[Any]) -> None:
    """Wait for whichever ends first, stop the others, and raise what it raised."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


async def disconnected(receive: Receive) -> None:
    """Returns when the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def unless_gone(receive: Receive, work: Awaitable[T]) -> T | None:
    """The result of some work, or None when the client hangs up before it is there."""
    task = asyncio.ensure_future(work)
    await first(task, disconnected(receive))
    return None if task.cancelled() else task.result()
