"""The pool of live agents where one app asks for many places at once."""

import asyncio

from clawdforge.core.running import pool as pools
from tests.unit.test_core_pool import Stubborn, end, taken


async def test_an_agent_stays_where_an_app_without_any_waits_for_the_places_of_others() -> None:
    """Who asked for thirty at once had none yet, and each place of a quiet app's was given to it as well."""
    pool = pools.AgentPool(10, idle_secs=60)
    busy, idle = taken(pool, "busy"), taken(pool, "idle")
    old = [pool.try_take("old", f"old {number}") for number in range(6)]
    assert all(pool.try_take(app, app) is not None for app in ("one", "another"))
    for seat in (*old, idle):
        assert seat is not None
        seat.agent = Stubborn()
        pool.give_back(seat, now=1.0 if seat in old else 9.9)
    waiting = [asyncio.create_task(pool.take("noisy", f"noisy {number}")) for number in range(12)]
    await asyncio.sleep(0)
    assert pool.waiting == 12
    assert not any(pool.has(seat) for seat in old if seat is not None)
    assert pool.has(idle)
    pool.give_back(busy, now=10.0)
    assert pool.has(busy)
    for task in waiting:
        task.cancel()
    await end(pool, busy, idle, *(seat for seat in old if seat is not None))
