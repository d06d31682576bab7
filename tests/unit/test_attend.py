"""Breaking a turn off works also when a cancel was lost on the way."""

import asyncio

from clawdforge.core.model import Answer
from clawdforge.core.running.attendant import Attendant
from clawdforge.core.running.pool import AgentPool


async def test_a_cancel_that_was_lost_is_repeated() -> None:
    """As Python 3.11 loses one when what was waited for comes at the same moment; that cannot be timed."""
    pool = AgentPool(1, 60)
    place = await pool.take("app", "session")
    lost = 0

    async def work() -> Answer:
        nonlocal lost
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            lost += 1
        await asyncio.Event().wait()
        raise AssertionError

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    attendant = Attendant.__new__(Attendant)
    attendant._pool = pool
    async with asyncio.timeout(10):
        await attendant._break_off(place, task)
    assert (lost, task.cancelled()) == (1, True)
