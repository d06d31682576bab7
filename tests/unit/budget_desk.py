"""An app with a session and budgets, over a real store, for the tests of budgets."""

from pathlib import Path
from typing import Any

from clawdforge.core.clock import SECOND, SystemClock
from clawdforge.core.ids import new_id
from clawdforge.core.models.budgets import BudgetRow, PurseRow
from clawdforge.core.models.principal import Principal
from clawdforge.core.models.rows import SessionRow
from clawdforge.core.ports import Tx
from clawdforge.core.rules.budgets import empty_purse
from clawdforge.core.rules.turns import Ending, finish, start_next, submit
from clawdforge.stores import open_store
from clawdforge.stores.sqlite.store import SqliteStore
from clawdforge.wire.base import from_iso
from clawdforge.wire.budgets import BudgetPeriod, BudgetScope
from clawdforge.wire.turn import Outcome, TurnRequest
from tests.conformance.stores.samples import APP, a_session

NOON = from_iso("2026-02-28T12:00:00Z")
DAY = 86_400 * SECOND


class Desk:
    """An app with one session, whose store can be closed and opened again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.session = a_session()
        self.at = NOON

    async def open(self) -> None:
        self.store: SqliteStore = await open_store(self.folder, SystemClock())

    async def reopen(self) -> None:
        await self.store.close()
        await self.open()

    async def add_session(self, **fields: Any) -> SessionRow:
        row = a_session(**fields)
        await self.store.write(APP, lambda tx: tx.add_session(row))
        return row

    async def bound(self, **fields: Any) -> BudgetRow:
        given: dict[str, Any] = {
            "app_name": APP,
            "budget_id": new_id(),
            "scope": BudgetScope.APP,
            "period": BudgetPeriod.DAY,
            "warn_at": 0.8,
            "created_at": 1,
        }
        row = BudgetRow(**{**given, **fields})
        return await self.store.write(APP, lambda tx: tx.put_budget(row))

    async def submit(
        self, session: SessionRow | None = None, by: Principal | None = None, **limits: Any
    ) -> int:
        sid, at = (session or self.session).session_id, self.at
        request = TurnRequest(prompt="four letters", **limits)
        made = await self.store.write(APP, lambda tx: submit(tx, sid, request, None, at, by))
        return made.turn.turn_index

    async def end(
        self, tokens: int | None = None, cost: float | None = None, session: SessionRow | None = None,
        **more: Any,
    ) -> None:  # fmt: skip
        """Start the next turn and end it with what its agent reports."""
        sid, at = (session or self.session).session_id, self.at
        usage = None if tokens is None and cost is None else {"total_tokens": tokens, "cost_usd": cost}
        ending = Ending(**{"outcome": Outcome.COMPLETED, "usage": usage, **more})

        def work(tx: Tx) -> None:
            started = start_next(tx, sid, "node", at)
            assert started is not None
            finish(tx, sid, started.turn.turn_index, ending, at)

        await self.store.write(APP, work)

    async def purse(self, budget: BudgetRow, at: int | None = None) -> PurseRow:
        fresh = empty_purse(budget, at or self.at)
        found = await self.store.read(APP, lambda view: view.purse(budget.budget_id, fresh.starts_at))
        return found or fresh

    async def kinds(self) -> list[str]:
        sid = self.session.session_id
        events = await self.store.read(
            APP, lambda view: view.events(sid, after=0, limit=1000, max_bytes=1 << 30)
        )
        return [event.type for event in events]
