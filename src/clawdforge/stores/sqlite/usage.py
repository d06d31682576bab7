"""What turns have used, day by day: counted in one statement, summed in one."""

from typing import Any, Final

from clawdforge.core.models.usage import DayUsage, UsageQuery, UsageSum
from clawdforge.core.records import Maker
from clawdforge.stores.sqlite.own_rows import OwnRows
from clawdforge.stores.sqlite.rows import Value
from clawdforge.stores.sqlite.search import from_cursor, to_cursor
from clawdforge.wire.usage import UsageBy

USED: Final = Maker(DayUsage)


class UsageRows(OwnRows):
    """What can be read."""

    def usage_sums(self, query: UsageQuery) -> tuple[list[UsageSum], str | None]:
        return read_page(self._rows("usage_sums", **bind(query)), query)


class UsageChanges(UsageRows):
    """What can be changed."""

    def add_usage(self, used: DayUsage) -> None:
        self._run("add_usage", **dict(zip(USED.names, USED.read(used), strict=True)))

    def forget_usage(self, before: str, limit: int) -> bool:
        return self._run("forget_usage", before=before, limit=limit) < limit


def bind(query: UsageQuery) -> dict[str, Value]:
    """The parameters of `usage_sums`, of one app or of all."""
    begun = query.cursor is not None
    place = [""] * 4 if query.cursor is None else from_cursor(query.cursor, str, str, str, str)
    last = dict(zip(("last_day", "last_app", "last_agent", "last_model"), place, strict=True))
    by = {f"by_{name}": int(name in query.by) for name in UsageBy}
    return {
        "first": query.first,
        "last": query.last,
        "limit": query.limit + 1,
        "begun": int(begun),
        **by,
        **last,
    }


def read_page(rows: list[tuple[Any, ...]], query: UsageQuery) -> tuple[list[UsageSum], str | None]:
    page = [
        UsageSum(
            day=day,
            app=app,
            agent=agent,
            model=model,
            turns=turns,
            input_tokens=taken,
            output_tokens=given,
            cached_tokens=cached,
            cost_usd=cost,
            estimated_input=estimated_taken,
            estimated_output=estimated_given,
            estimated_cost=estimated_cost,
        )
        for (
            day, app, agent, model, turns, taken, given, cached, cost,
            estimated_taken, estimated_given, estimated_cost,
        ) in rows[: query.limit]
    ]  # fmt: skip
    if len(rows) <= query.limit:
        return page, None
    last = page[-1]
    return page, to_cursor(last.day, last.app, last.agent, last.model)
