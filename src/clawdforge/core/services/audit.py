"""The audit ledger as operators read it: a page of it, and whether it is whole."""

import asyncio

from clawdforge.core.model import AuditRow
from clawdforge.core.ports import Store
from clawdforge.core.rules.audit_chain import ChainVerdict, Walk

PAGE = 200


class AuditService:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def page(self, app_name: str | None, after: int, limit: int) -> list[AuditRow]:
        return await self._store.read_system(
            lambda view: view.audit(app_name=app_name, after=after, limit=limit)
        )

    async def verify(self, head: str | None = None) -> ChainVerdict:
        """Walk the whole chain a page at a time: a long one neither fills memory nor holds others up."""
        walk, after, limit = Walk(head), 0, PAGE
        while True:
            try:
                rows = await self.page(None, after, limit)
            except ValueError:  # an entry that is no longer JSON: find which
                if limit == 1:
                    return walk.broken("cannot be read")
                limit = 1
                continue
            if not rows:
                return walk.end()
            verdict = walk.take(rows)
            if verdict is not None:
                return verdict
            after = rows[-1].number
            await asyncio.sleep(0)
