"""Who gets in where budgets are: at each, one below and one above, by scope and by period."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clawdforge.core.models.principal import Principal
from clawdforge.core.rules.budgets import to_micro_dollars
from clawdforge.core.rules.periods import period_end, period_start
from clawdforge.core.rules.queue_edits import change_queued
from clawdforge.core.rules.turns import start_next
from clawdforge.wire.base import from_iso
from clawdforge.wire.budgets import BudgetPeriod, BudgetScope
from clawdforge.wire.errors import BudgetExceeded
from clawdforge.wire.turn import ChangeTurn
from tests.conformance.stores.samples import APP
from tests.unit.budget_desk import DAY, Desk


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    made = Desk(tmp_path / "data")
    await made.open()
    await made.store.write(APP, lambda tx: tx.add_session(made.session))
    yield made
    await made.store.close()


@pytest.mark.parametrize(
    ("moment", "day", "month"),
    [
        ("2026-02-28T23:59:59.999999Z", ("2026-02-28", "2026-03-01"), ("2026-02-01", "2026-03-01")),
        ("2026-03-01T00:00:00Z", ("2026-03-01", "2026-03-02"), ("2026-03-01", "2026-04-01")),
        ("2028-02-29T00:00:00Z", ("2028-02-29", "2028-03-01"), ("2028-02-01", "2028-03-01")),
        ("2026-12-31T12:00:00Z", ("2026-12-31", "2027-01-01"), ("2026-12-01", "2027-01-01")),
    ],
)
def test_days_and_months_are_those_of_utc(moment: str, day: tuple[str, str], month: tuple[str, str]) -> None:
    at = from_iso(moment)
    for period, (first, last) in ((BudgetPeriod.DAY, day), (BudgetPeriod.MONTH, month)):
        assert period_start(period, at) == from_iso(f"{first}T00:00:00Z")
        assert period_end(period, at) == from_iso(f"{last}T00:00:00Z")
    assert (period_start(BudgetPeriod.TOTAL, at), period_end(BudgetPeriod.TOTAL, at)) == (0, None)


async def test_as_many_get_in_as_there_are_shares_and_no_more(desk: Desk) -> None:
    budget = await desk.bound(max_tokens=100, share_tokens=25)
    for _ in range(4):
        await desk.submit()
    with pytest.raises(BudgetExceeded) as refused:
        await desk.submit()
    assert refused.value.retry_after == 12 * 3600
    assert "clawdforge budget set --period day --tokens 200" in refused.value.message
    assert refused.value.extra["budget_id"] == budget.budget_id
    await desk.reopen()
    with pytest.raises(BudgetExceeded):
        await desk.submit()
    await desk.end(tokens=10)
    assert (await desk.purse(budget)).reserved_tokens == 75
    await desk.submit()  # 10 are spent and 75 held: the last share is what is left
    purse = await desk.purse(budget)
    assert (purse.spent_tokens, purse.reserved_tokens) == (10, 90)
    with pytest.raises(BudgetExceeded):
        await desk.submit()


@pytest.mark.parametrize(("limit", "fits"), [(99, True), (100, True), (101, False)])
async def test_a_limit_of_the_turn_is_held_whole(desk: Desk, limit: int, fits: bool) -> None:
    budget = await desk.bound(max_tokens=100, share_tokens=1)
    if not fits:
        with pytest.raises(BudgetExceeded):
            await desk.submit(max_tokens=limit)
        return
    await desk.submit(max_tokens=limit)
    assert (await desk.purse(budget)).reserved_tokens == limit


async def test_one_remaining_cent_lets_one_turn_in(desk: Desk) -> None:
    budget = await desk.bound(max_cost=to_micro_dollars(1.0), share_cost=to_micro_dollars(0.05))
    await desk.submit()
    await desk.end(cost=0.99)
    assert (await desk.purse(budget)).spent_cost == 990_000
    await desk.submit()
    for limit in (None, 0.0, 0.000001):
        with pytest.raises(BudgetExceeded):
            await desk.submit(max_cost_usd=limit)
    await desk.end(cost=0.004)
    await desk.submit(max_cost_usd=0.006)
    with pytest.raises(BudgetExceeded):
        await desk.submit(max_cost_usd=0.0)


async def test_a_turn_that_promises_to_use_nothing_holds_something(desk: Desk) -> None:
    """Else any number of them would get in beside each other."""
    await desk.bound(max_tokens=2, share_tokens=1)
    await desk.submit(max_tokens=0)
    await desk.submit(max_tokens=0)
    with pytest.raises(BudgetExceeded):
        await desk.submit(max_tokens=0)


async def test_a_token_spends_its_own_budget_and_an_agent_that_of_its_turn(desk: Desk) -> None:
    mine, his = Principal(app=APP, token_id="mine"), Principal(app=APP, token_id="his")
    budget = await desk.bound(scope=BudgetScope.TOKEN, scope_id="mine", max_tokens=20, share_tokens=10)
    await desk.submit(by=his)
    assert (await desk.purse(budget)).reserved_tokens == 0
    await desk.end(tokens=1)
    await desk.submit(by=mine)
    sid = desk.session.session_id
    await desk.store.write(APP, lambda tx: start_next(tx, sid, "node", desk.at))
    sub = await desk.add_session(parent_session_id=sid)
    agent = Principal(app=APP, session_id=sid)
    await desk.submit(sub, by=agent)
    assert (await desk.purse(budget)).reserved_tokens == 20
    with pytest.raises(BudgetExceeded):
        await desk.submit(sub, by=agent)
    await desk.submit(sub, by=his)


async def test_whoever_writes_another_prompt_pays_for_it(desk: Desk) -> None:
    """It was held of the budget of whoever had queued it."""
    mine, his = Principal(app=APP, token_id="mine"), Principal(app=APP, token_id="his")
    budget = await desk.bound(scope=BudgetScope.TOKEN, scope_id="mine", max_tokens=10, share_tokens=10)
    other = await desk.bound(scope=BudgetScope.TOKEN, scope_id="his", max_tokens=10, share_tokens=10)
    index = await desk.submit(by=mine)

    async def change(by: Principal, **fields: Any) -> None:
        request, sid = ChangeTurn(**fields), desk.session.session_id
        await desk.store.write(APP, lambda tx: change_queued(tx, sid, index, request, desk.at, by=by))

    await change(his, position=0)
    assert (await desk.purse(budget)).reserved_tokens == 10, "the prompt is the same"
    await change(his, prompt="five letters")
    assert (await desk.purse(budget)).reserved_tokens == 0
    assert (await desk.purse(other)).reserved_tokens == 10
    await desk.submit(by=mine)
    with pytest.raises(BudgetExceeded):
        await change(mine, prompt="six")
    assert (await desk.purse(other)).reserved_tokens == 10, "nothing was changed"
    await desk.end(tokens=3)
    assert (await desk.purse(other)).spent_tokens == 3


async def test_sub_sessions_spend_the_budget_of_the_session_above(desk: Desk) -> None:
    sid = desk.session.session_id
    budget = await desk.bound(scope=BudgetScope.SESSION, scope_id=sid, max_tokens=20, share_tokens=10)
    sub = await desk.add_session(parent_session_id=sid)
    below, beside = await desk.add_session(parent_session_id=sub.session_id), await desk.add_session()
    await desk.submit(below)
    await desk.submit(sub)
    with pytest.raises(BudgetExceeded):
        await desk.submit()
    await desk.submit(beside)
    await desk.end(tokens=3, session=below)
    assert (await desk.purse(budget)).spent_tokens == 3


async def test_the_tightest_budget_decides_and_nothing_is_held_of_the_others(desk: Desk) -> None:
    wide = await desk.bound(max_tokens=1000, share_tokens=10, by_operator=True)
    await desk.bound(max_tokens=0, share_tokens=1)
    with pytest.raises(BudgetExceeded):
        await desk.submit()
    assert (await desk.purse(wide)).reserved_tokens == 0


async def test_a_total_does_not_begin_anew(desk: Desk) -> None:
    await desk.bound(max_tokens=10, share_tokens=10, period=BudgetPeriod.TOTAL)
    await desk.submit()
    desk.at += 400 * DAY
    with pytest.raises(BudgetExceeded) as refused:
        await desk.submit()
    assert refused.value.retry_after is None
    assert "does not begin anew" in refused.value.message


async def test_a_changed_budget_keeps_what_was_spent(desk: Desk) -> None:
    budget = await desk.bound(max_tokens=10, share_tokens=10)
    await desk.submit()
    with pytest.raises(BudgetExceeded):
        await desk.submit()
    changed = await desk.bound(max_tokens=20, share_tokens=10)
    assert changed == replace(budget, max_tokens=20)
    await desk.submit()
    assert (await desk.purse(budget)).reserved_tokens == 20


async def test_a_budget_that_is_removed_bounds_nobody(desk: Desk) -> None:
    budget = await desk.bound(max_tokens=10, share_tokens=10)
    index = await desk.submit()
    assert await desk.store.write(APP, lambda tx: tx.remove_budget(budget.budget_id))
    await desk.submit()
    sid = desk.session.session_id
    assert await desk.store.read(APP, lambda view: view.reservations(sid, index)) == []
    await desk.end(tokens=3)
