"""The simulation itself: it repeats, it finds what is planted, and what it finds is made smaller."""

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import pytest

from clawdforge.core.running.pool import AgentPool
from clawdforge.core.running.supervisor import Supervisor
from proofs.simulation.loop import SimLoop
from proofs.simulation.plans import draw_plan
from proofs.simulation.run import simulate
from proofs.simulation.shrink import shrink
from proofs.simulation.world import Machine


@pytest.fixture(scope="module")
def machine() -> Machine:
    return Machine()


def test_a_seed_gives_the_same_schedule_again(machine: Machine) -> None:
    for seed in range(700, 715):
        plan = draw_plan(seed)
        first, again = (simulate(plan, each, traced=True) for each in (machine, Machine()))
        assert (first.fingerprint, first.trace) == (again.fingerprint, again.trace)


def test_seeds_give_different_schedules(machine: Machine) -> None:
    seen = {simulate(draw_plan(seed), machine).fingerprint for seed in range(700, 715)}
    assert len(seen) == 15


def test_the_schedules_crash_and_fail(machine: Machine) -> None:
    outcomes = [simulate(draw_plan(seed), machine) for seed in range(800, 840)]
    assert sum(outcome.lives - 1 for outcome in outcomes) > 2
    assert sum(outcome.struck for outcome in outcomes) > 5
    assert sum(outcome.prompts for outcome in outcomes) > 40


def _run(loop: SimLoop, order: list[str]) -> None:
    async def say(word: str) -> None:
        await asyncio.sleep(0)
        order.append(word)

    async def all_of_them() -> None:
        await asyncio.gather(*(say(word) for word in "abcdef"))

    task = loop.create_task(all_of_them())
    loop.run_while(lambda: not task.done())


def test_the_order_of_what_is_ready_is_drawn() -> None:
    orders = set()
    for seed in range(20):
        order: list[str] = []
        _run(SimLoop(random.Random(seed), 1.0, 0.0), order)  # noqa: S311 - a simulation
        orders.add("".join(order))
    assert len(orders) > 10
    in_order: list[str] = []
    _run(SimLoop(random.Random(1), 0.0, 0.0), in_order)  # noqa: S311 - a simulation
    assert in_order == list("abcdef")


def test_time_is_virtual_and_threads_are_simulated() -> None:
    loop = SimLoop(random.Random(1), 1.0, 0.0)  # noqa: S311 - a simulation
    loop.draw_work = lambda: 5.0

    async def work() -> int:
        await asyncio.sleep(3600)
        return await asyncio.to_thread(lambda: 7)

    task = loop.create_task(work())
    loop.run_while(lambda: not task.done())
    assert (task.result(), loop.time()) == (7, 3610.0)


@contextmanager
def hasty_close() -> Iterator[None]:
    """A close does not wait for the end of the agent."""
    with mock.patch.object(Supervisor, "end_agent", mock.AsyncMock()):
        yield


@contextmanager
def lost_place() -> Iterator[None]:
    """A place that is left is not given back."""
    with mock.patch.object(AgentPool, "give_back", return_value=None):
        yield


@pytest.mark.parametrize("bug", [hasty_close, lost_place])
def test_a_planted_bug_is_found_and_made_smaller(machine: Machine, bug: object) -> None:
    with bug():  # type: ignore[operator]
        seed = next(seed for seed in range(1, 200) if simulate(draw_plan(seed), machine).violations)
        plan = draw_plan(seed)
        smaller, outcome = shrink(plan, machine)
        assert outcome.violations
        assert smaller.size < plan.size
        assert outcome.trace
        assert str(smaller)
    assert not simulate(smaller, machine).violations
