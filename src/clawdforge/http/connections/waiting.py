"""Waits for one thing while watching for others, such as a client that hangs up; closes generators."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from starlette.types import Receive

T = TypeVar("T")


@asynccontextmanager
async def closing(items: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """Close a generator at the end of the block, so that it releases what it holds."""
    try:
        yield items
    finally:
        if isinstance(items, AsyncGenerator):
            await items.aclose()


async def wait_first(*waits: Awaitable[Any]) -> None:
    """Wait for whichever ends first, cancel the others, and raise what it raised.

    How long is for the callers to say: one of the things that they wait for is a client that hangs up.
    """
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


async def wait_disconnected(receive: Receive) -> None:
    """Return when the client has hung up."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def unless_disconnected(receive: Receive, work: Awaitable[T]) -> T | None:
    """The result of some work, or None when the client hangs up first."""
    task = asyncio.ensure_future(work)
    await wait_first(task, wait_disconnected(receive))
    return None if task.cancelled() else task.result()
