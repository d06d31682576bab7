"""What is counted against budgets while a turn runs and when it has ended, and what is told of it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.models.agents import Used
from clawdforge.core.rules.budgets import empty_purse, read_spending
from clawdforge.core.rules.interrupted import end_interrupted_turn
from clawdforge.core.rules.purses import allow, extend, find_question, reserve_for_run, settle_run
from clawdforge.core.rules.turns import Ending, finish, start_next, withdraw
from clawdforge.core.running.recovery import RecoveryService
from clawdforge.wire.budgets import BudgetThen
from clawdforge.wire.error_codes import ErrorCode
from clawdforge.wire.errors import BudgetExceeded
from clawdforge.wire.session import OnInterrupt
from clawdforge.wire.turn import Outcome
from tests.conformance.stores.samples import APP
from tests.unit.budget_desk import DAY, NOON, Desk


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    made = Desk(tmp_path / "data")
    await made.open()
    await made.store.write(APP, lambda tx: tx.add_session(made.session))
    yield made
    await made.store.close()


async def test_what_was_reported_and_what_was_estimated_stay_apart(desk: Desk) -> None:
    budget = await desk.bound(max_tokens=1000, share_tokens=10, max_cost=10**9, share_cost=70_000)
    for _ in range(3):
        await desk.submit()
    await desk.end(tokens=30, cost=0.5)
    await desk.end()  # it tells nothing: the prompt's tokens, and the money that it held
    await desk.end(usage={"total_tokens": 5, "cost_usd": 0.25, "estimated": True, "cost_estimated": True})
    purse = await desk.purse(budget)
    assert (purse.spent_tokens, purse.spent_cost) == (30, 500_000)
    assert (purse.estimated_tokens, purse.estimated_cost) == (3 + 5, 70_000 + 250_000)
    assert (purse.reserved_tokens, purse.reserved_cost) == (0, 0)


@pytest.mark.parametrize(
    "more",
    [
        {"outcome": Outcome.FAILED, "code": ErrorCode.AGENT_AUTH_REQUIRED},
        {"outcome": Outcome.FAILED, "code": ErrorCode.AGENT_START_FAILED},
        {"outcome": Outcome.FAILED, "code": ErrorCode.AGENT_NOT_INSTALLED},
        {"outcome": Outcome.CANCELLED, "reached_agent": False},
    ],
)
async def test_a_turn_that_reached_no_agent_costs_nothing(desk: Desk, more: dict[str, Any]) -> None:
    budget = await desk.bound(max_cost=100, share_cost=100)
    await desk.submit()
    await desk.end(**more)
    assert await desk.purse(budget) == empty_purse(budget, desk.at)
    await desk.submit()


async def test_a_turn_that_is_taken_out_of_the_queue_costs_nothing(desk: Desk) -> None:
    budget = await desk.bound(max_tokens=10, share_tokens=10)
    index = await desk.submit()
    await desk.store.write(APP, lambda tx: withdraw(tx, desk.session.session_id, index, desk.at))
    assert await desk.purse(budget) == empty_purse(budget, desk.at)


async def test_ending_a_turn_twice_counts_it_once(desk: Desk) -> None:
    budget = await desk.bound(max_tokens=10, share_tokens=10)
    index = await desk.submit()
    await desk.end(tokens=4)
    sid, again = desk.session.session_id, Ending(outcome=Outcome.COMPLETED, usage={"total_tokens": 4})
    await desk.store.write(APP, lambda tx: finish(tx, sid, index, again, desk.at))
    assert (await desk.purse(budget)).spent_tokens == 4


async def test_a_turn_that_a_crash_cut_off_is_estimated(desk: Desk) -> None:
    budget = await desk.bound(max_cost=100, share_cost=40)
    await desk.submit()
    sid = desk.session.session_id
    await desk.store.write(APP, lambda tx: start_next(tx, sid, "node", desk.at))
    await desk.reopen()
    assert (await desk.purse(budget)).reserved_cost == 40
    await desk.store.write(APP, lambda tx: end_interrupted_turn(tx, sid, "crash", desk.at))
    purse = await desk.purse(budget)
    assert (purse.reserved_cost, purse.estimated_cost, purse.spent_cost) == (0, 40, 0)


@pytest.mark.parametrize("room", [True, False])
async def test_recovery_goes_on_only_where_a_budget_allows_it(desk: Desk, room: bool) -> None:
    desk.session = await desk.add_session(on_interrupt=OnInterrupt.RETRY)
    budget = await desk.bound(max_cost=80 if room else 40, share_cost=40)
    await desk.submit()
    sid = desk.session.session_id
    await desk.store.write(APP, lambda tx: start_next(tx, sid, "node", desk.at))
    await desk.store.write(APP, lambda tx: end_interrupted_turn(tx, sid, "crash", desk.at))
    queued = await desk.store.read(APP, lambda view: view.queued_turns(sid))
    assert [turn.automatic for turn in queued] == [True] * room
    assert (await desk.purse(budget)).reserved_cost == 40 * room


async def test_a_period_begins_anew_and_an_old_turn_counts_in_its_own(desk: Desk) -> None:
    budget = await desk.bound(max_tokens=10, share_tokens=10)
    await desk.submit()
    desk.at += DAY
    await desk.submit()
    assert (await desk.purse(budget, NOON)).reserved_tokens == 10  # still held, so still there
    await desk.end(tokens=7)
    assert (await desk.purse(budget, NOON)).spent_tokens == 7
    assert (await desk.purse(budget)).spent_tokens == 0
    desk.at += DAY
    await desk.submit()
    assert await desk.purse(budget, NOON) == empty_purse(budget, NOON)  # cleared away


@pytest.mark.parametrize(("tokens", "warned"), [(79, 0), (80, 1), (81, 1)])
async def test_somebody_is_warned_once_in_a_period(desk: Desk, tokens: int, warned: int) -> None:
    budget = await desk.bound(max_tokens=100, share_tokens=1)
    await desk.submit()
    await desk.end(tokens=tokens)
    kinds = await desk.kinds()
    assert kinds.count("budget.warned") == warned
    assert kinds[-1] == "turn.ended"
    if not warned:
        return
    await desk.reopen()
    await desk.submit()
    await desk.end(tokens=1)
    assert (await desk.kinds()).count("budget.warned") == 1
    audit = await desk.store.read_system(lambda view: view.audit(app_name=APP, limit=100))
    told = [entry.details for entry in audit if entry.event == "budget.warned"]
    assert [(one["budget_id"], one["tokens"]) for one in told] == [(budget.budget_id, tokens)]
    desk.at += DAY
    await desk.submit()
    await desk.end(tokens=80)
    assert (await desk.kinds()).count("budget.warned") == 2


async def test_a_person_is_asked_when_nothing_is_left(desk: Desk) -> None:
    budget = await desk.bound(max_tokens=10, share_tokens=10, action=BudgetThen.ASK)
    sid = desk.session.session_id
    first, second = await desk.submit(), await desk.submit()
    questions = [
        await desk.store.read(APP, lambda view, index=index: find_question(view, sid, index))  # type: ignore[misc]
        for index in (first, second)
    ]
    assert questions[0] is None
    assert questions[1] is not None
    assert "10 tokens a day" in questions[1].name
    await desk.end(tokens=10)
    started = await desk.store.write(APP, lambda tx: start_next(tx, sid, "node", desk.at))
    assert started is not None
    assert started.question == questions[1]
    await desk.reopen()  # nobody has answered: no agent has seen the turn
    await desk.store.write(APP, lambda tx: end_interrupted_turn(tx, sid, "crash", desk.at))
    assert (await desk.purse(budget)).estimated_tokens == 0
    third = await desk.submit()
    await desk.store.write(APP, lambda tx: allow(tx, sid, third))
    await desk.end(tokens=5)
    assert (await desk.purse(budget)).spent_tokens == 15


@pytest.mark.parametrize(("tokens", "stopped"), [(19, False), (20, False), (21, True)])
async def test_a_running_turn_that_crosses_is_stopped(desk: Desk, tokens: int, stopped: bool) -> None:
    budget = await desk.bound(max_tokens=20, share_tokens=5, action=BudgetThen.STOP)
    index = await desk.submit()
    sid = desk.session.session_id
    used = Used(tokens=tokens)
    for _ in range(2):
        why = await desk.store.write(APP, lambda tx: extend(tx, sid, index, used))
        assert (why is not None) is stopped
    assert (await desk.purse(budget)).reserved_tokens == tokens
    await desk.end(tokens=tokens)
    assert (await desk.purse(budget)).reserved_tokens == 0


async def test_what_others_hold_stops_nobody(desk: Desk) -> None:
    """Nineteen turns in the queue have used nothing, and may never."""
    await desk.bound(max_tokens=20, share_tokens=1, action=BudgetThen.STOP)
    index = await desk.submit()
    for _ in range(19):
        await desk.submit(await desk.add_session())
    sid = desk.session.session_id
    assert await desk.store.write(APP, lambda tx: extend(tx, sid, index, Used(tokens=2))) is None
    assert await desk.store.write(APP, lambda tx: extend(tx, sid, index, Used(tokens=21))) is not None


async def test_what_a_running_turn_uses_is_gone_for_others(desk: Desk) -> None:
    await desk.bound(max_tokens=20, share_tokens=5)
    index, other = await desk.submit(), await desk.add_session()
    sid = desk.session.session_id
    assert await desk.store.write(APP, lambda tx: extend(tx, sid, index, Used(tokens=20))) is None
    with pytest.raises(BudgetExceeded):
        await desk.submit(other)


async def test_a_one_shot_run_is_counted_like_a_turn_and_cannot_ask(desk: Desk) -> None:
    budget = await desk.bound(max_cost=100, share_cost=60, action=BudgetThen.ASK)
    await desk.store.write(APP, lambda tx: reserve_for_run(tx, "one", None, desk.at, "node"))
    await desk.store.write(APP, lambda tx: reserve_for_run(tx, "two", None, desk.at, "node"))
    with pytest.raises(BudgetExceeded):
        await desk.store.write(APP, lambda tx: reserve_for_run(tx, "three", None, desk.at, "node"))
    assert await desk.store.read_system(lambda view: view.lost_runs()) == [(APP, "one"), (APP, "two")]
    usage = read_spending({"total_tokens": 3, "cost_usd": 0.00002})
    await desk.store.write(APP, lambda tx: settle_run(tx, "one", usage, desk.at))
    assert ((await desk.purse(budget)).spent_cost, (await desk.purse(budget)).reserved_cost) == (20, 40)


async def test_what_an_agent_claims_cannot_overflow(desk: Desk) -> None:
    budget = await desk.bound(max_tokens=10, share_tokens=5, max_cost=10, share_cost=5, action=BudgetThen.ASK)
    for tokens, cost in ((2**80, 1e300), (2**80, 1e300), (-5, -5.0)):
        await desk.submit()
        await desk.end(tokens=tokens, cost=cost)
    purse = await desk.purse(budget)
    assert (purse.spent_tokens, purse.spent_cost) == (2**53 - 1, 2**53 - 1)


async def test_runs_that_a_dead_server_left_are_counted_at_the_start(desk: Desk) -> None:
    budget = await desk.bound(max_cost=100, share_cost=60, max_tokens=100, share_tokens=30)
    await desk.store.write(APP, lambda tx: reserve_for_run(tx, "one", None, desk.at, "node"))
    await desk.reopen()
    nobody: Any = None
    recovery = RecoveryService(desk.store, SystemClock(), nobody, ())
    assert [await recovery.settle_lost_runs() for _ in range(2)] == [1, 0]
    purse = await desk.purse(budget)
    assert (purse.reserved_cost, purse.estimated_cost) == (0, 60)
    assert (purse.reserved_tokens, purse.estimated_tokens) == (0, 30), "nobody knows what it has used"
