"""Whoever looks after a turn wakes at the first thing that happens, and never misses one."""

import asyncio
from typing import Any

import pytest

from clawdforge.core.running.bell import Bell
from clawdforge.core.running.late_calls import LateCalls
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


async def test_many_bells_wake_by_one_timer_in_the_order_of_their_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop, late_calls = asyncio.get_running_loop(), LateCalls()
    order: list[float] = []

    async def listen(within: float) -> None:
        begun = loop.time()
        assert not await Bell(late_calls).listen(within)
        assert loop.time() - begun >= within
        order.append(within)

    await asyncio.wait_for(asyncio.gather(*(listen(secs) for secs in (0.03, 0.01, 0.05, 0.01))), 10)
    assert order == [0.01, 0.01, 0.03, 0.05]

    timers: list[float] = []
    call_at = loop.call_at

    def count(when: float, *args: Any, **more: Any) -> asyncio.TimerHandle:
        timers.append(when)
        return call_at(when, *args, **more)

    monkeypatch.setattr(loop, "call_at", count)
    for _ in range(100):
        bell = Bell(late_calls)
        loop.call_soon(bell.ring)
        assert await bell.listen(within=3600.0)
    assert len(timers) == 1, "the first has set it"
    await listen(0.01)
    assert len(timers) == 2, "one that is due before it has set it again"


async def test_a_bell_that_has_rung_is_not_woken_when_its_time_is_up() -> None:
    late_calls = LateCalls()
    first, second = Bell(late_calls), Bell(late_calls)
    woken: list[str] = []
    cancelled = late_calls.call_later(0.01, lambda: woken.append("cancelled"))
    late_calls.call_later(0.01, lambda: woken.append("due"))
    first.ring()
    cancelled.cancel()
    assert await first.listen(within=0.01)
    assert not await second.listen(within=0.02)
    assert woken == ["due"]
