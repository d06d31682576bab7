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
        slots.give_back(app)

    tasks = [asyncio.create_task(want(app, app + str(n))) for app in ("a", "b") for n in (1, 2, 3)]
    await asyncio.sleep(0)
    assert slots.waiting == 6
    slots.give_back("a")
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
    slots.give_back("a")
    await asyncio.wait_for(late, 60)
    assert slots.taken == 1


async def test_a_place_given_to_one_who_is_being_cancelled_goes_on_to_the_next() -> None:
    slots = FairSlots(1)
    await slots.take("a")
    gone = asyncio.create_task(slots.take("b"))
    late = asyncio.create_task(slots.take("c"))
    await asyncio.sleep(0)
    slots.give_back("a")
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    await asyncio.wait_for(late, 60)
    assert slots.taken == 1


async def test_nobody_jumps_the_queue() -> None:
    slots = FairSlots(2)
    assert slots.try_take("a")
    assert slots.try_take("b")
    assert not slots.try_take("b")
    waiting = asyncio.create_task(slots.take("a"))
    await asyncio.sleep(0)
    slots.give_back("a")
    assert not slots.try_take("b"), "the free place belongs to the one who waits"
    await asyncio.wait_for(waiting, 60)


@pytest.mark.parametrize(("size", "kept"), [(1, 0), (4, 0), (5, 1), (20, 4)])
async def test_the_last_places_are_for_apps_that_have_none(size: int, kept: int) -> None:
    slots = FairSlots(size)
    took = [slots.try_take("long") for _ in range(size)]
    assert took == [True] * (size - kept) + [False] * kept
    waiting = asyncio.create_task(slots.take("long"))
    await asyncio.sleep(0)
    newcomers = [slots.try_take(f"new{number}") for number in range(kept + 1)]
    assert newcomers == [True] * kept + [False]
    if kept:
        slots.give_back("new0")
        await asyncio.sleep(0)
        assert not waiting.done(), "a newcomer's place is not for those who have some"
        assert slots.try_take("new0")
    for _ in range(kept + 1):
        slots.give_back("long")
    await asyncio.wait_for(waiting, 60)
    assert slots.taken == size - kept


async def test_a_place_goes_to_the_first_who_may_have_it() -> None:
    slots = FairSlots(5)
    for _ in range(4):
        assert slots.try_take("long")
    assert slots.try_take("new")
    first = asyncio.create_task(slots.take("long"))
    second = asyncio.create_task(slots.take("other"))
    await asyncio.sleep(0)
    slots.give_back("long")
    await asyncio.wait_for(second, 60)
    assert not first.done()
    slots.give_back("other")
    await asyncio.sleep(0)
    assert not first.done(), "four are taken, and the fifth is kept"
    slots.give_back("new")
    await asyncio.wait_for(first, 60)


async def test_an_app_has_no_more_than_its_limit() -> None:
    slots = FairSlots(10)
    slots.limit("a", 2)
    assert [slots.try_take("a") for _ in range(3)] == [True, True, False]
    assert slots.try_take("b"), "the limit of one app is not that of another"
    waiting = asyncio.create_task(slots.take("a"))
    await asyncio.sleep(0)
    assert (slots.waiting, slots.excess("a")) == (1, 1)
    slots.give_back("b")
    await asyncio.sleep(0)
    assert not waiting.done()
    slots.give_back("a")
    assert await waiting
    assert slots.taken == 2


async def test_a_limit_that_is_raised_or_taken_away_serves_those_who_wait() -> None:
    slots = FairSlots(10)
    slots.limit("a", 1)
    assert slots.try_take("a")
    waiting = [asyncio.create_task(slots.take("a")) for _ in range(3)]
    await asyncio.sleep(0)
    slots.limit("a", 2)
    await asyncio.sleep(0)
    assert [task.done() for task in waiting] == [True, False, False]
    slots.limit("a", None)
    assert await asyncio.gather(*waiting) == [True, True, True]
    slots.limit("a", 1)
    assert slots.excess("a") == 4


async def test_who_comes_beside_is_not_counted_at_the_limit_and_waits_for_nobody() -> None:
    slots = FairSlots(10)
    slots.limit("a", 1)
    assert await slots.take("a", beside=True), "below the limit it counts like any other"
    ordinary = asyncio.create_task(slots.take("a"))
    await asyncio.sleep(0)
    assert not await slots.take("a", beside=True)
    assert not ordinary.done()
    slots.give_back("a", counted=False)
    await asyncio.sleep(0)
    assert not ordinary.done(), "it gave back what was not counted"
    slots.give_back("a")
    assert await ordinary
    slots.give_back("a")
    assert (slots.taken, slots.excess("a")) == (0, 0)


async def test_who_comes_beside_does_not_wait_behind_others_of_its_app() -> None:
    slots = FairSlots(1)
    slots.limit("a", 0)
    assert slots.try_take("b")
    ordinary = asyncio.create_task(slots.take("a"))
    await asyncio.sleep(0)
    beside = asyncio.create_task(slots.take("a", beside=True))
    await asyncio.sleep(0)
    slots.give_back("b")
    assert await beside is False
    assert not ordinary.done()
    ordinary.cancel()
    await asyncio.wait({ordinary})
    slots.give_back("a", counted=False)
    assert (slots.taken, slots.waiting) == (0, 0)
