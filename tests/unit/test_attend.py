"""Breaking a turn off works also when a cancel was lost on the way."""

import asyncio

from clawdforge.core.models.agents import Answer
from clawdforge.core.running.attendant import break_off
from clawdforge.core.running.pool import AgentPool


async def test_a_cancel_that_was_lost_is_repeated() -> None:
    """As Python 3.11 loses one when what was waited for comes at the same moment; that cannot be timed."""
    pool = AgentPool(1, 60)
    seat = await pool.take("app", "session")
    begun = asyncio.Event()
    lost = 0

    async def work() -> Answer:
        nonlocal lost
        try:
            begun.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            lost += 1
        await asyncio.Event().wait()
        raise AssertionError

    task = asyncio.create_task(work())
    await begun.wait()
    async with asyncio.timeout(10):
        await break_off(pool, seat, task)
    assert (lost, task.cancelled()) == (1, True)
