"""Whoever looks after a turn wakes at the first thing that happens, and never misses one."""

import asyncio

import pytest

from clawdforge.core.running.bell import Bell
from clawdforge.core.running.stops import Stop
from clawdforge.wire.turn import Outcome


async def test_it_is_heard_when_it_rang_before_and_when_it_rings_twice() -> None:
    bell = Bell()
    bell.ring()
    bell.ring()
    assert await bell.listen(within=60.0)


async def test_the_one_who_listens_wakes_when_the_time_is_up() -> None:
    assert not await Bell().listen(within=0.001)


async def test_one_listens_at_a_time() -> None:
    """The first of two would never be woken."""
    bell = Bell()
    listening = asyncio.create_task(bell.listen(within=60.0))
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="listens already"):
        await bell.listen(within=60.0)
    bell.ring()
    assert await listening


async def test_a_stop_rings_and_one_who_listens_may_be_cancelled() -> None:
    stop = Stop()
    bell = stop.bell = Bell()
    listening = asyncio.create_task(bell.listen(within=60.0))
    await asyncio.sleep(0)
    listening.cancel()
    await asyncio.wait({listening})
    assert listening.cancelled()
    assert stop.request(Outcome.CANCELLED, "cancelled")
    assert not stop.request(Outcome.CANCELLED, "cancelled")
    await bell.listen(within=60.0)
