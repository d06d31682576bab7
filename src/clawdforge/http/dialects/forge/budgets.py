"""Forge routes about budgets: an app's own, and the operator's for any app."""

from typing import Annotated

from starlette.responses import Response

from clawdforge.core.rules.budgets import to_usd
from clawdforge.core.services.budgets import BudgetState
from clawdforge.http.errors import json_response
from clawdforge.http.requests.marks import Query
from clawdforge.http.routers import Router
from clawdforge.http.routing import AdminRoute, App, AppRoute, Core, Limit
from clawdforge.wire.admin import Done
from clawdforge.wire.base import to_seconds
from clawdforge.wire.budgets import (
    Budget,
    BudgetPage,
    BudgetReply,
    Left,
    Money,
    PutBudget,
    PutOwnBudget,
)

AppName = Annotated[str | None, Query(max_length=128)]
AfterApp = Annotated[str, Query(max_length=128)]


def routes() -> Router:
    router = Router(AppRoute, tags=["budgets"])
    router.get("/budgets", response_model=BudgetPage)(list_own)
    router.put("/budgets", response_model=BudgetReply)(put_own)
    router.delete("/budgets/{budget_id}", response_model=Done)(remove_own)
    return router


def admin_routes() -> Router:
    router = Router(AdminRoute, tags=["admin"])
    router.get("/admin/budgets", response_model=BudgetPage)(list_any)
    router.put("/admin/budgets", response_model=BudgetReply)(put_any)
    router.delete("/admin/budgets/{budget_id}", response_model=Done)(remove_any)
    return router


async def list_own(core: Core, app: App) -> Response:
    """What the app, its tokens and its sessions may spend, and what is left; also what the operator set."""
    return _page(await core.budgets.find_for(app))


async def put_own(core: Core, app: App, body: PutOwnBudget) -> Response:
    """Limit what the app, one of its tokens or sessions may spend, beside the operator's budgets.

    The same scope, id and period replace; what was spent stays spent.
    """
    return json_response(BudgetReply(budget=shape(await core.budgets.put(app, body, by_operator=False))))


async def remove_own(core: Core, app: App, budget_id: str) -> Response:
    """Remove a budget that the app has set itself."""
    await core.budgets.remove(app, budget_id)
    return json_response(Done())


async def list_any(
    core: Core, app_name: AppName = None, after: AfterApp = "", limit: Limit = 100
) -> Response:
    """The budgets of one app, or of all apps by name: the operator's and their own. `after` is an app.

    A page has all budgets of each of its apps, so it may have more than `limit`.
    """
    if app_name is not None:
        return _page(await core.budgets.find_for(app_name))
    return _page(*await core.budgets.find_all(after, limit))


async def put_any(core: Core, body: PutBudget) -> Response:
    """Limit what an app, one of its tokens or sessions may spend. The app cannot loosen it.

    The same app, scope, id and period replace; what was spent stays spent.
    """
    state = await core.budgets.put(body.app_name, body, by_operator=True)
    return json_response(BudgetReply(budget=shape(state)))


async def remove_any(core: Core, budget_id: str) -> Response:
    """Remove a budget, whoever has set it."""
    await core.budgets.remove_any(budget_id)
    return json_response(Done())


def shape(state: BudgetState) -> Budget:
    row, purse, left = state.row, state.purse, state.cost_left
    return Budget(
        budget_id=row.budget_id,
        app_name=row.app_name,
        scope=row.scope,
        id=row.scope_id or None,
        period=row.period,
        by_operator=row.by_operator,
        max_tokens=row.max_tokens,
        max_cost_usd=None if row.max_cost is None else to_usd(row.max_cost),
        share_tokens=None if row.max_tokens is None else row.share_tokens,
        share_cost_usd=None if row.max_cost is None else to_usd(row.share_cost),
        warn_at=row.warn_at,
        then=row.action,
        warned=purse.warned_at is not None,
        spent=Money(tokens=purse.spent_tokens, cost_usd=to_usd(purse.spent_cost)),
        estimated=Money(tokens=purse.estimated_tokens, cost_usd=to_usd(purse.estimated_cost)),
        reserved=Money(tokens=purse.reserved_tokens, cost_usd=to_usd(purse.reserved_cost)),
        left=Left(tokens=state.tokens_left, cost_usd=None if left is None else to_usd(left)),
        period_ends=to_seconds(state.ends_at),
    )


def _page(states: list[BudgetState], following: str | None = None) -> Response:
    budgets = [shape(state) for state in states]
    return json_response(BudgetPage(budgets=budgets, count=len(budgets), next=following))
