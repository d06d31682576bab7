"""When each token was last used: kept roughly, in memory first, and written for all tokens at once."""

import asyncio
import contextlib
from typing import Final

from clawdforge.core.clock import SECOND, Clock
from clawdforge.core.models.rows import TokenRow
from clawdforge.core.ports import Store, SystemTx
from clawdforge.wire.base import Micros
from clawdforge.wire.errors import ForgeAPIError

COARSE: Final = 60 * SECOND
"""A use within a minute of the last one is not noted: a request must not cost a write."""


class TokenUses:
    """What a kill loses is a minute of bookkeeping, nothing that anybody was told."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._unwritten: dict[str, Micros] = {}
        self._written: dict[str, Micros] = {}  # lately: a row may have been read before (`known_tokens.py`)

    def note(self, row: TokenRow) -> None:
        """Somebody used this token just now."""
        now = self._clock.now()
        if now - (self.last_use(row) or 0) >= COARSE:
            self._unwritten[row.token_id] = now

    def last_use(self, row: TokenRow) -> Micros | None:
        noted = (row.last_used_at, self._written.get(row.token_id), self._unwritten.get(row.token_id))
        return max([at for at in noted if at is not None], default=None)

    async def run(self, every_secs: float) -> None:
        """Write what was noted from time to time."""
        while True:
            await asyncio.sleep(every_secs)
            with contextlib.suppress(ForgeAPIError):  # the disk may have room again next time
                await self.write()

    async def write(self) -> None:
        """Write what was noted, in one transaction; nothing at all if nothing was."""
        noted = dict(self._unwritten)
        if not noted:
            return

        def work(tx: SystemTx) -> None:
            for token_id, at in noted.items():
                tx.change_token(token_id, last_used_at=at)

        await self._store.write_system(work)
        now = self._clock.now()
        self._written = {one: at for one, at in (self._written | noted).items() if now - at < COARSE}
        for token_id, at in noted.items():
            if self._unwritten.get(token_id) == at:
                del self._unwritten[token_id]
