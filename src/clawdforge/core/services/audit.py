"""The audit as operators read it: page by page, and whether it is intact."""

import asyncio

from clawdforge.core.models.rows import AuditRow
from clawdforge.core.ports import Store
from clawdforge.core.rules.audit_chain import ChainCheck, ChainVerdict

PAGE = 200


class AuditService:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def page(self, app_name: str | None, after: int, limit: int) -> list[AuditRow]:
        return await self._store.read_system(
            lambda view: view.audit(app_name=app_name, after=after, limit=limit)
        )

    async def verify(self, head: str | None = None) -> ChainVerdict:
        """Check the whole chain page by page, so that a long one neither fills memory nor delays others."""
        base = await self._store.read_system(lambda view: view.audit_base())
        chain, after, limit = ChainCheck(head, base), 0, PAGE
        while True:
            try:
                rows = await self.page(None, after, limit)
            except ValueError:  # an entry that is no longer JSON: find which
                if limit == 1:
                    return chain.fail("cannot be read")
                limit = 1
                continue
            if not rows:
                return chain.finish()
            verdict = chain.check(rows)
            if verdict is not None:
                return verdict
            after = rows[-1].number
            await asyncio.sleep(0)
