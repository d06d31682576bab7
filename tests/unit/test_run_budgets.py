"""One-shot runs and budgets: however a run ends, it holds nothing afterwards, and what it used is counted."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.models.budgets import PurseRow
from clawdforge.core.running.membership import Membership
from clawdforge.core.services.runs import RunOrder, RunOutcome, RunService
from clawdforge.wire.admin import RunRequest
from clawdforge.wire.errors import ForgeAPIError, StoreUnavailable
from tests.conformance.stores.samples import APP
from tests.unit.budget_desk import Desk

PROMPT = "x" * 400


class Program:
    """What `run` does is a function; a run that is given nothing to do hangs."""

    agent = "claude"

    def __init__(self, do: Callable[[], RunOutcome] | None = None) -> None:
        self._do = do
        self.begun = asyncio.Event()

    async def run(self, _order: RunOrder) -> RunOutcome:
        self.begun.set()
        if self._do is None:
            await asyncio.Event().wait()
            raise AssertionError
        return self._do()


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    found = Desk(tmp_path / "data")
    await found.open()
    await found.store.write(APP, lambda tx: tx.add_session(found.session))
    yield found
    await found.store.close()


def service(desk: Desk, program: Program) -> RunService:
    stand_in: Any = program
    clock = SystemClock()
    here = Membership(desk.store, clock, "node", "here", "folder", "0", 10.0)
    return RunService(desk.store, clock, stand_in, here, max_runs=4, timeout_secs=30)


async def purse_of(desk: Desk) -> PurseRow:
    desk.at = SystemClock().now()
    (budget,) = await desk.store.read(APP, lambda view: view.budgets())
    return await desk.purse(budget)


def fail() -> RunOutcome:
    raise OSError(28, "No space left on device")


async def test_a_run_that_fails_unexpectedly_holds_nothing(desk: Desk) -> None:
    await desk.bound(max_tokens=1000, share_tokens=500)
    for _ in range(4):
        with pytest.raises(OSError, match="No space"):
            await service(desk, Program(fail)).run(APP, RunRequest(prompt=PROMPT))
    purse = await purse_of(desk)
    assert (purse.reserved_tokens, purse.estimated_tokens) == (0, 400)


async def test_a_run_whose_caller_hangs_up_is_estimated(desk: Desk) -> None:
    await desk.bound(max_tokens=1000, share_tokens=500)
    program = Program()
    task = asyncio.create_task(service(desk, program).run(APP, RunRequest(prompt=PROMPT)))
    await asyncio.wait_for(program.begun.wait(), 30)
    task.cancel()
    await asyncio.wait({task}, timeout=30)
    purse = await purse_of(desk)
    assert (purse.reserved_tokens, purse.estimated_tokens) == (0, 100)


async def test_a_reservation_in_doubt_is_given_back(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    await desk.bound(max_tokens=1000, share_tokens=500)
    write, calls = desk.store.write, []

    async def doubt(app: str, work: Any) -> Any:
        calls.append(work)
        done = await write(app, work)
        if len(calls) == 1:
            raise StoreUnavailable
        return done

    monkeypatch.setattr(desk.store, "write", doubt)
    with pytest.raises(ForgeAPIError):
        await service(desk, Program(fail)).run(APP, RunRequest(prompt=PROMPT))
    purse = await purse_of(desk)
    assert (purse.reserved_tokens, purse.estimated_tokens, purse.spent_tokens) == (0, 0, 0)
