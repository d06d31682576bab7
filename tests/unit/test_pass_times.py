"""What the loop waits for in its passes is nobody's, and an app's share is one of what the loop has had."""

import asyncio
import itertools

import pytest

from clawdforge.core.pacing.loop_turns import LoopTurns
from tests.unit.test_loop_turns import Clock


async def test_nobody_rests_for_what_the_machine_made_the_loop_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request of a millisecond that got its processor after fifty was rested from for fifty more."""
    clock = Clock(monkeypatch)
    turns = LoopTurns()
    for _ in range(20):
        await turns.enter("noisy")
        await turns.enter("quiet")
        clock.wait(0.05)
        clock.now += 0.001
        for _ in range(5):
            await asyncio.sleep(0)
        assert "quiet" not in turns._rests.who(turns._times.now())
        assert turns._handle is None, "the loop sleeps"
        clock.wait(0.005)


async def test_who_is_charged_after_a_stall_does_not_rest_for_the_stall(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a thread has computed is told in the middle of a pass, before it is known how long that was."""
    clock = Clock(monkeypatch)
    turns = LoopTurns()
    await turns.enter("noisy")
    await turns.enter("quiet")
    clock.wait(0.9)  # for a processor
    turns.charge("noisy", 0.05)
    for _ in range(5):
        await asyncio.sleep(0)
    assert "noisy" in turns._rests.who(turns._times.now())
    assert turns._rests.next_end(turns._times.now()) <= 0.05


async def test_where_the_loop_gets_half_of_a_processor_a_third_is_a_third_of_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a third of the time on the wall an app would have had two thirds of the loop."""
    clock = Clock(monkeypatch)
    turns = LoopTurns()
    begun: list[float] = []

    async def heavy() -> None:
        await turns.enter("noisy")
        begun.append(turns._times.now())
        clock.wait(0.02)
        clock.now += 0.02

    await turns.enter("quiet")
    await asyncio.gather(*(heavy() for _ in range(5)))
    gaps = [later - earlier for earlier, later in itertools.pairwise(begun)]
    assert min(gaps[1:]) > 0.0599, "of which it had computed 0.02"
    assert clock.now > begun[-1] + 0.099, "what was waited for has gone by all the same"
