"""What turns have used, day by day: an app's own, and for the operator all of them."""

from dataclasses import replace

from clawdforge.core.clock import Clock
from clawdforge.core.models.usage import UsageQuery, UsageSum
from clawdforge.core.ports import Store
from clawdforge.core.rules.usage_days import OF_ALL, OF_AN_APP, read_query


class UsageService:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def of_app(
        self, app: str, by: str, first: str | None, last: str | None, *, limit: int, cursor: str | None
    ) -> tuple[UsageQuery, list[UsageSum], str | None]:
        """What was asked for, a page of it, and the next one's cursor."""
        asked = read_query(by, first, last, self._clock.now(), OF_AN_APP)
        query = replace(asked, limit=limit, cursor=cursor)
        return query, *await self._store.read(app, lambda view: view.usage_sums(query))

    async def of_all(
        self, by: str, first: str | None, last: str | None, *, limit: int, cursor: str | None
    ) -> tuple[UsageQuery, list[UsageSum], str | None]:
        """The same over all apps, which can be told apart too."""
        asked = read_query(by, first, last, self._clock.now(), OF_ALL)
        query = replace(asked, limit=limit, cursor=cursor)
        return query, *await self._store.read_system(lambda view: view.usage_sums(query))
