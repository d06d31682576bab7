"""Forge routes about what turns have used, day by day, and for the operator what each app has."""

from typing import Annotated

from starlette.responses import Response

from clawdforge.core.models.usage import UsageQuery, UsageSum
from clawdforge.core.rules.usage import MAX_COUNT
from clawdforge.http.errors import json_response
from clawdforge.http.requests.marks import Query
from clawdforge.http.routers import Router
from clawdforge.http.routing import AdminRoute, App, AppRoute, Core, Limit
from clawdforge.wire.admin import AdminUsage, AppUsage
from clawdforge.wire.errors import InvalidRequest
from clawdforge.wire.usage import UsageAmount, UsagePage, UsageRow

By = Annotated[str, Query(max_length=100)]
FromDay = Annotated[str | None, Query(alias="from", max_length=32)]
ToDay = Annotated[str | None, Query(alias="to", max_length=32)]
Cursor = Annotated[str | None, Query(max_length=4000)]


def routes() -> Router:
    router = Router(AppRoute, tags=["usage"])
    router.get("/usage", response_model=UsagePage)(own)
    return router


def admin_routes() -> Router:
    router = Router(AdminRoute, tags=["admin"])
    router.get("/admin/usage", response_model=AdminUsage | UsagePage)(of_all)
    return router


async def own(
    core: Core,
    app: App,
    by: By = "day",
    first: FromDay = None,
    last: ToDay = None,
    cursor: Cursor = None,
    limit: Limit = 1000,
) -> Response:
    """What the app's turns have used, by `day` (UTC), `agent` and `model`; at most 366 days, usually 30."""
    return _page(*await core.usage.of_app(app, by, first, last, limit=limit, cursor=cursor))


async def of_all(
    core: Core,
    by: Annotated[str | None, Query(max_length=100)] = None,
    first: FromDay = None,
    last: ToDay = None,
    cursor: Cursor = None,
    limit: Limit = 1000,
) -> Response:
    """Sessions, turns and tokens of each app; with `by`, as `GET /usage` over all apps, also by `app`."""
    if by is not None:
        return _page(*await core.usage.of_all(by, first, last, limit=limit, cursor=cursor))
    if first is not None or last is not None or cursor is not None:
        raise InvalidRequest("from, to and cursor go with by, such as by=day,app")
    apps = [AppUsage.model_validate(used) for used in await core.apps.usage()]
    return json_response(AdminUsage(apps=apps, count=len(apps)))


def _page(query: UsageQuery, sums: list[UsageSum], following: str | None) -> Response:
    rows = [_row(one) for one in sums]
    page = UsagePage(first_day=query.first, last_day=query.last, rows=rows, count=len(rows), next=following)
    return json_response(page)


def _row(one: UsageSum) -> UsageRow:
    reported = _amount(one.input_tokens, one.output_tokens, one.cached_tokens, one.cost_usd)
    estimated = _amount(one.estimated_input, one.estimated_output, 0, one.estimated_cost)
    return UsageRow(
        day=one.day or None,
        app=one.app or None,
        agent=one.agent or None,
        model=one.model or None,
        turns=one.turns,
        reported=reported,
        estimated=estimated,
    )


def _amount(taken: int, given: int, cached: int, cost: float | None) -> UsageAmount:
    total = min(MAX_COUNT, taken + given + cached)
    return UsageAmount(
        input_tokens=taken, output_tokens=given, cached_tokens=cached, total_tokens=total, cost_usd=cost
    )
