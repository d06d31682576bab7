"""Places for live agents: bounded, fair between apps, never lost when somebody gives up waiting."""

import asyncio

import pytest

from clawdforge.core.running.fair_slots import FairSlots


async def test_apps_are_served_in_turn_and_the_oldest_of_each_first() -> None:
    slots = FairSlots(1)
    await slots.take("a")
    served: list[str] = []

    async def want(app: str, name: str) -> None:
        await slots.take(app)
        served.append(name)
        slots.give_back()

    tasks = [asyncio.create_task(want(app, app + str(n))) for app in ("a", "b") for n in (1, 2, 3)]
    await asyncio.sleep(0)
    assert slots.waiting == 6
    slots.give_back()
    await asyncio.gather(*tasks)
    assert served == ["a1", "b1", "a2", "b2", "a3", "b3"]
    assert (slots.taken, slots.waiting) == (0, 0)


async def test_a_place_is_not_lost_with_the_one_who_gave_up() -> None:
    slots = FairSlots(1)
    await slots.take("a")
    gone = asyncio.create_task(slots.take("b"))
    late = asyncio.create_task(slots.take("c"))
    await asyncio.sleep(0)
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    slots.give_back()
    await asyncio.wait_for(late, 60)
    assert slots.taken == 1


async def test_a_place_given_to_one_who_is_being_cancelled_goes_on_to_the_next() -> None:
    slots = FairSlots(1)
    await slots.take("a")
    gone = asyncio.create_task(slots.take("b"))
    late = asyncio.create_task(slots.take("c"))
    await asyncio.sleep(0)
    slots.give_back()
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    await asyncio.wait_for(late, 60)
    assert slots.taken == 1


async def test_nobody_jumps_the_queue() -> None:
    slots = FairSlots(2)
    assert slots.try_take()
    assert slots.try_take()
    assert not slots.try_take()
    waiting = asyncio.create_task(slots.take("a"))
    await asyncio.sleep(0)
    slots.give_back()
    assert not slots.try_take(), "the free place belongs to the one who waits"
    await asyncio.wait_for(waiting, 60)
