"""Budgets: what the operator and the apps themselves say may be spent, and what is left of it."""

from dataclasses import dataclass
from typing import Final

from clawdforge.core.clock import Clock
from clawdforge.core.ids import new_id
from clawdforge.core.models.budgets import BudgetRow, PurseRow
from clawdforge.core.ports import Store, Tx, View
from clawdforge.core.rules.budgets import default_share, empty_purse, find_left, to_micro_dollars
from clawdforge.core.rules.periods import period_end
from clawdforge.wire.base import Micros
from clawdforge.wire.budgets import BudgetScope, PutOwnBudget
from clawdforge.wire.errors import (
    AppNotFound,
    BudgetNotFound,
    Forbidden,
    LimitExceeded,
    SessionNotFound,
    TokenNotFound,
)

MOST: Final = 200
"""Budgets of one app: every prompt looks for those that concern it."""


@dataclass(frozen=True, slots=True)
class BudgetState:
    """A budget, its purse in the present period, what is left, and when the period ends."""

    row: BudgetRow
    purse: PurseRow
    tokens_left: int | None
    cost_left: int | None
    ends_at: Micros | None


class BudgetService:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def find_for(self, app: str) -> list[BudgetState]:
        now = self._clock.now()
        return await self._store.read(app, lambda view: [_state(view, row, now) for row in view.budgets()])

    async def find_all(self, after: str, limit: int) -> tuple[list[BudgetState], str | None]:
        """Those of all apps whose names come after this one, at least `limit` if there are as many.

        No app's are torn apart: the second value is the last app of the page, if there are more.
        """
        apps = await self._store.read_system(lambda view: view.budget_apps(after, limit + 1))
        found: list[BudgetState] = []
        for app in apps:
            found += await self.find_for(app)
            if len(found) >= limit:
                return found, None if app == apps[-1] else app
        return found, None

    async def put(self, app: str, request: PutOwnBudget, *, by_operator: bool) -> BudgetState:
        """Set a budget, or change it: what was spent of it stays spent.

        An app has its own beside the operator's. All of them hold, so it can bound itself tighter only.
        """
        await self._check_target(app, request)
        now, limit = self._clock.now(), request.max_cost_usd
        cost = None if limit is None else to_micro_dollars(limit)
        share = request.share_cost_usd
        row = BudgetRow(
            app_name=app,
            budget_id=new_id(),
            scope=request.scope,
            scope_id=request.id or "",
            period=request.period,
            by_operator=by_operator,
            max_tokens=request.max_tokens,
            max_cost=cost,
            share_tokens=request.share_tokens or default_share(request.max_tokens),
            share_cost=default_share(cost) if share is None else max(1, to_micro_dollars(share)),
            warn_at=request.warn_at,
            action=request.then,
            created_at=now,
        )

        def work(tx: Tx) -> BudgetState:
            if row.scope is BudgetScope.SESSION and tx.session(row.scope_id) is None:
                raise SessionNotFound
            there = tx.budgets()
            is_new = all(_key(one) != _key(row) for one in there)
            if is_new and sum(one.by_operator == by_operator for one in there) >= MOST:
                raise LimitExceeded(f"an app may have {MOST} budgets; remove one first")
            made = tx.put_budget(row)
            details = {
                "budget_id": made.budget_id,
                "by_operator": by_operator,
                **request.model_dump(mode="json", exclude={"app_name"}, exclude_none=True),
            }
            tx.audit(None, "budget set", now, details)
            return _state(tx, made, now)

        return await self._store.write(app, work)

    async def remove(self, app: str, budget_id: str, *, by_operator: bool = False) -> None:
        """Forget a budget and what was spent of it. An app cannot remove what the operator has set."""
        now = self._clock.now()

        def work(tx: Tx) -> None:
            row = tx.budget(budget_id)
            if row is None:
                raise BudgetNotFound
            if row.by_operator and not by_operator:
                raise Forbidden("the operator has set this budget; only the operator can remove it")
            tx.remove_budget(budget_id)
            tx.audit(None, "budget removed", now, {"budget_id": budget_id, "by_operator": by_operator})

        await self._store.write(app, work)

    async def remove_any(self, budget_id: str) -> None:
        """The operator's: of whichever app it is."""
        app = await self._store.read_system(lambda view: view.app_of_budget(budget_id))
        if app is None:
            raise BudgetNotFound
        await self.remove(app, budget_id, by_operator=True)

    async def _check_target(self, app: str, request: PutOwnBudget) -> None:
        if await self._store.read_system(lambda view: view.app_row(app)) is None:
            raise AppNotFound
        if request.scope is BudgetScope.TOKEN:
            tokens = await self._store.read_system(lambda view: view.tokens(app))
            if all(token.token_id != request.id for token in tokens):
                raise TokenNotFound


def _state(view: View, row: BudgetRow, at: Micros) -> BudgetState:
    fresh = empty_purse(row, at)
    purse = view.purse(row.budget_id, fresh.starts_at) or fresh
    return BudgetState(row, purse, *find_left(row, purse), period_end(row.period, at))


def _key(row: BudgetRow) -> tuple[str, str, str, bool]:
    return row.scope, row.scope_id, row.period, row.by_operator
