"""Requests that take too long are ended, each in its time, with one timer for all of them."""

import asyncio

import pytest

from clawdforge.http.requests.deadlines import Deadlines
from clawdforge.wire.errors import RequestTimedOut

LONG = 60.0


async def wait(deadlines: Deadlines, secs: float) -> str:
    with deadlines():
        await asyncio.sleep(secs)
    return "done"


async def test_who_is_due_is_ended_and_others_go_on() -> None:
    deadlines = Deadlines(0.05)
    late = asyncio.ensure_future(wait(deadlines, LONG))
    await asyncio.sleep(0.02)
    later, quick = asyncio.ensure_future(wait(deadlines, LONG)), asyncio.ensure_future(wait(deadlines, 0))
    assert await quick == "done"
    with pytest.raises(RequestTimedOut):
        await late
    assert not later.done(), "it has a time of its own"
    with pytest.raises(RequestTimedOut):
        await later
    assert late.cancelling() == later.cancelling() == 0
    assert deadlines._open == {}


async def test_one_timer_does_for_all_that_are_open() -> None:
    deadlines, loop = Deadlines(LONG), asyncio.get_running_loop()
    made: list[object] = []
    call_at = loop.call_at
    loop.call_at = lambda *words, **more: made.append(words) or call_at(*words, **more)  # type: ignore[method-assign,func-returns-value]
    await asyncio.gather(*(wait(deadlines, 0) for _ in range(50)))
    assert len(made) == 1
    assert deadlines._timer is not None
    deadlines._timer.cancel()


async def test_the_timer_goes_when_nobody_is_there_and_comes_with_the_next() -> None:
    deadlines = Deadlines(0.01)
    await wait(deadlines, 0)
    async with asyncio.timeout(LONG):
        while deadlines._timer is not None:  # noqa: ASYNC110 - a timer of the loop tells nobody
            await asyncio.sleep(0.01)
    with pytest.raises(RequestTimedOut):
        await wait(deadlines, LONG)


async def test_whoever_else_ends_it_is_heard() -> None:
    task = asyncio.ensure_future(wait(Deadlines(LONG), LONG))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_failure_of_its_own_is_told() -> None:
    with pytest.raises(TimeoutError), Deadlines(LONG)():
        raise TimeoutError
