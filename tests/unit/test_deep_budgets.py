"""The doctor finds what ended turns still hold of budgets, and purses that count wrong; and repairs both."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.models.budgets import ReservationRow
from clawdforge.core.rules.purses import reserve_for_run
from clawdforge.upkeep.deep import examine_deep
from tests.conformance.stores.samples import APP
from tests.unit.budget_desk import Desk


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    made = Desk(tmp_path / "data")
    await made.open()
    await made.store.write(APP, lambda tx: tx.add_session(made.session))
    yield made
    await made.store.close()


def findings(desk: Desk, *, repair: bool = False) -> list[tuple[str, str]]:
    found = examine_deep(desk.folder, SystemClock(), repair=repair)
    return [(one.level, one.text) for one in found if one.about in ("budgets", "repair")]


async def examine(desk: Desk, *, repair: bool = False) -> list[tuple[str, str]]:
    await desk.store.close()
    found = findings(desk, repair=repair)
    await desk.open()
    return found


async def test_turns_that_run_and_runs_hold_what_is_theirs(desk: Desk) -> None:
    await desk.bound(max_tokens=100, share_tokens=10)
    await desk.submit()
    await desk.submit()
    await desk.end(tokens=3)
    await desk.store.write(APP, lambda tx: reserve_for_run(tx, "run", None, desk.at, "node"))
    assert await examine(desk) == [("ok", "what is held of them is held by turns that have not ended")]


@pytest.mark.parametrize("there", [True, False])
async def test_what_a_turn_lost_is_found_and_counted(desk: Desk, there: bool) -> None:
    budget = await desk.bound(max_tokens=100, share_tokens=10)
    index = await desk.submit()
    await desk.end(tokens=3)
    purse = await desk.purse(budget)
    lost = ReservationRow(
        app_name=APP,
        holder_id=desk.session.session_id,
        turn_index=index if there else 99,
        budget_id=budget.budget_id,
        starts_at=purse.starts_at,
        tokens=10,
    )
    await desk.store.write(APP, lambda tx: tx.put_purse(replace(purse, spent_tokens=0, reserved_tokens=10)))
    await desk.store.write(APP, lambda tx: tx.put_reservation(lost))
    ((level, text),) = await examine(desk)
    assert (level, "still holds a part of a budget" in text) == ("bad", True)
    ((level, text),) = await examine(desk, repair=True)
    assert (level, text.endswith("; counted")) == ("ok", True)
    assert await desk.purse(budget) == replace(purse, spent_tokens=3 if there else 0)
    assert [level for level, _ in await examine(desk)] == ["ok"]


async def test_a_purse_that_counts_wrong_is_counted_anew(desk: Desk) -> None:
    budget = await desk.bound(max_tokens=100, share_tokens=10)
    await desk.submit()
    purse = await desk.purse(budget)
    await desk.store.write(APP, lambda tx: tx.put_purse(replace(purse, reserved_tokens=70)))
    assert [level for level, _ in await examine(desk)] == ["bad"]
    assert [level for level, _ in await examine(desk, repair=True)] == ["ok"]
    assert await desk.purse(budget) == purse
