"""The simulation itself: it repeats, it finds what is planted, and what it finds is made smaller."""

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from clawdforge.core.running.pool import AgentPool
from clawdforge.core.running.recovery import RecoveryService
from clawdforge.core.running.supervisor import Supervisor
from clawdforge.wire.errors import StoreUnavailable
from proofs.kit.report import Run
from proofs.simulation import proof
from proofs.simulation.database import SimDb
from proofs.simulation.loop import SimLoop
from proofs.simulation.plans import Fault, draw_plan
from proofs.simulation.run import simulate
from proofs.simulation.shrink import shrink


@pytest.fixture(scope="module")
def db() -> SimDb:
    return SimDb()


def test_a_seed_gives_the_same_schedule_again(db: SimDb) -> None:
    for seed in range(700, 715):
        plan = draw_plan(seed)
        first, again = (simulate(plan, each, traced=True) for each in (db, SimDb()))
        assert (first.fingerprint, first.trace) == (again.fingerprint, again.trace)


def test_seeds_give_different_schedules(db: SimDb) -> None:
    seen = {simulate(draw_plan(seed), db).fingerprint for seed in range(700, 715)}
    assert len(seen) == 15


def test_the_schedules_crash_and_fail(db: SimDb) -> None:
    outcomes = [simulate(draw_plan(seed), db) for seed in range(800, 840)]
    assert sum(outcome.lives - 1 for outcome in outcomes) > 2
    assert sum(outcome.struck for outcome in outcomes) > 5
    assert sum(outcome.prompts for outcome in outcomes) > 40


def test_a_start_may_fail_as_often_as_something_goes_wrong(db: SimDb) -> None:
    kinds = ("read fails", "store refuses", "store in doubt")
    faults = tuple(Fault(kind, nth) for kind in kinds for nth in range(1, 13))
    outcome = simulate(replace(draw_plan(1), faults=faults, crashes=()), db)
    assert outcome.violations == []
    assert outcome.lives > 30


def test_a_start_that_fails_without_a_reason_is_noticed(db: SimDb) -> None:
    with mock.patch.object(RecoveryService, "wake_all", side_effect=StoreUnavailable("no")):
        outcome = simulate(replace(draw_plan(1), faults=(), crashes=()), db)
    assert "the server ended with" in outcome.violations[0]
    assert outcome.lives == 1


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
def test_a_planted_bug_is_found_and_made_smaller(db: SimDb, bug: object) -> None:
    with bug():  # type: ignore[operator]
        seed = next(seed for seed in range(1, 200) if simulate(draw_plan(seed), db).violations)
        plan = draw_plan(seed)
        smaller, outcome = shrink(plan, db)
        assert outcome.violations
        assert smaller.size < plan.size
        assert outcome.trace
        assert str(smaller)
    assert not simulate(smaller, db).violations


def report(folder: Path, workers: int, *, size: int = 12) -> tuple[dict[str, object], list[str]]:
    run = Run("simulation", 700, size, short=True, folder=folder, source=folder, workers=workers)
    with mock.patch.object(proof, "BATCH", 4):
        proof.prove(run)
    run.figures.pop("milliseconds_of_a_schedule")
    return run.figures, run.violations


def test_several_processes_tell_the_same_as_one(tmp_path: Path) -> None:
    one, several = (report(tmp_path, workers) for workers in (1, 3))
    assert one == several
    assert one[0]["schedules"] == 12
    assert one[1] == []


def test_the_first_violation_ends_a_run_and_can_be_had_alone(tmp_path: Path) -> None:
    with lost_place():
        figures, violations = report(tmp_path, 1, size=200)
        assert len(violations) == 1
        number = figures["schedules"]
        assert isinstance(number, int)
        assert number < 200
        assert f"schedule {number}: " in violations[0]
        assert f"--seed {699 + number} --size 1" in violations[0]
        assert simulate(draw_plan(699 + number), SimDb()).violations
