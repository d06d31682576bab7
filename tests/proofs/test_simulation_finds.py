"""Small plans of what the simulation has found, in many orders: each once broke a promise in some of them."""

from collections.abc import Awaitable, Callable
from unittest import mock

import pytest

from clawdforge.core.models.rows import TurnRow
from clawdforge.core.running.recorder import TurnRecorder
from proofs.simulation.database import SimDb
from proofs.simulation.plans import Fault, Op, Plan
from proofs.simulation.run import simulate

ORDERS = range(60)


@pytest.fixture(scope="module")
def db() -> SimDb:
    return SimDb()


def find_violations(
    db: SimDb, ops: tuple[Op, ...], faults: tuple[Fault, ...] = (), orders: range = ORDERS
) -> dict[int, list[str]]:
    session = ("red", "approve_all", "hold")
    plans = [Plan(order=order, sessions=(session,), clients=(ops,), faults=faults) for order in orders]
    outcomes = {plan.order: simulate(plan, db).violations for plan in plans}
    return {order: violations for order, violations in outcomes.items() if violations}


def test_a_retry_runs_although_its_caller_has_hung_up(db: SimDb) -> None:
    prompt = Op("submit", 0, script="say done", flag=True)
    assert find_violations(db, (prompt, Op("retry", 0, flag=True, hang_up=0.004))) == {}


@pytest.mark.parametrize("nth", range(4, 7))
def test_a_retry_runs_although_nobody_knows_whether_it_was_written(db: SimDb, nth: int) -> None:
    prompt = Op("submit", 0, script="done", flag=True)
    ops = (prompt, Op("retry", 0, flag=True))
    assert find_violations(db, ops, (Fault("store in doubt", nth),)) == {}


def test_a_retry_runs_although_its_files_could_not_be_put_back(db: SimDb) -> None:
    prompt = Op("submit", 0, script="done", flag=True)
    ops = (prompt, prompt, Op("retry", 0, number=1, flag=True))
    assert find_violations(db, ops, (Fault("no snapshot", 5),)) == {}


def test_a_start_in_doubt_is_looked_at_again_although_a_read_fails(db: SimDb) -> None:
    """Nobody knows of the commit that started the turn, and the worker that was to look failed at once."""
    prompt = Op("submit", 0, script="done", flag=True)
    found: dict[tuple[int, int, int], list[str]] = {}
    for doubt in range(1, 4):
        for read in range(4, 16):
            faults = (Fault("store in doubt", doubt), Fault("read fails", read))
            some = find_violations(db, (prompt,), faults, range(8))
            found |= {(doubt, read, order): each for order, each in some.items()}
    assert found == {}


@pytest.mark.parametrize("then", [Op("cancel", 0), Op("stop", 0, number=1)])
def test_what_ends_a_turn_waits_for_a_start_in_doubt_whose_worker_failed(db: SimDb, then: Op) -> None:
    """Nobody seemed to run it until the worker tried again: a cancel was answered with 0 while it ran."""
    found: dict[tuple[int, int], list[str]] = {}
    for read in range(8, 11):
        faults = (Fault("store in doubt", 2), Fault("read fails", read))
        some = find_violations(db, (Op("submit", 0, script="say done"), then), faults, range(12))
        found |= {(read, order): each for order, each in some.items()}
    assert found == {}


def test_a_turn_whose_end_could_not_be_written_is_ended_by_the_next_try(db: SimDb) -> None:
    """Whatever else than the store failed, nobody would have run the session before the next start."""
    prompt = Op("submit", 0, script="say done")
    broken = mock.AsyncMock(side_effect=RuntimeError("no end (simulated)"))
    with (
        mock.patch.object(TurnRecorder, "end", end_fails_once(TurnRecorder.end)),
        mock.patch.object(TurnRecorder, "end_without_answer", broken),
    ):
        assert find_violations(db, (prompt, Op("cancel", 0), prompt), orders=range(6)) == {}
    assert broken.await_count == 6


def end_fails_once(end: Callable[..., Awaitable[TurnRow]]) -> Callable[..., Awaitable[TurnRow]]:
    """Of each session the first turn fails to end."""

    async def fail_or_end(recorder: TurnRecorder, *given: object, **named: object) -> TurnRow:
        if recorder.turn_index == 1 and recorder.session_id not in failed:
            failed.add(recorder.session_id)
            raise RuntimeError("no end (simulated)")
        return await end(recorder, *given, **named)

    failed: set[str] = set()
    return fail_or_end


def test_a_session_that_is_opened_again_while_it_is_deleted_holds_nothing(db: SimDb) -> None:
    """A turn that began in between had no end, and kept its part of the app's budget."""
    prompt, session = Op("submit", 0, script="say done", flag=True), ("red", "approve_all", "hold")
    reopening = (Op("reopen", 0), prompt) * 3
    plans = (
        Plan(order=order, sessions=(session,), clients=((prompt, Op("delete", 0)), reopening), shuffle=1.0)
        for order in range(300)
    )
    assert {plan.order: found for plan in plans if (found := simulate(plan, db).violations)} == {}
