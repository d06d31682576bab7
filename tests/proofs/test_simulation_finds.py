"""Small plans of what the simulation has found, in many orders: each once broke a promise in some of them."""

import pytest

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


def test_a_session_that_is_opened_again_while_it_is_deleted_holds_nothing(db: SimDb) -> None:
    """A turn that began in between had no end, and kept its part of the app's budget."""
    prompt, session = Op("submit", 0, script="say done", flag=True), ("red", "approve_all", "hold")
    reopening = (Op("reopen", 0), prompt) * 3
    plans = (
        Plan(order=order, sessions=(session,), clients=((prompt, Op("delete", 0)), reopening), shuffle=1.0)
        for order in range(300)
    )
    assert {plan.order: found for plan in plans if (found := simulate(plan, db).violations)} == {}
