"""Packs the events of turns that ended some time ago, in the background, a slice at a time.

What is not packed yet is found in the store, so that nothing is lost by stopping at any moment. A damaged
session is left as it is until the next start and costs no other.
"""

import asyncio
import logging
from typing import Final

from clawdforge.core.clock import SECOND, Clock
from clawdforge.core.ports import Store
from clawdforge.core.rules.packing import last_old_event
from clawdforge.wire.base import Micros
from clawdforge.wire.errors import SessionDamaged, Unavailable

log = logging.getLogger(__name__)
PAGE: Final = 200
LOOKS: Final = 4  # in the time after which events are packed
LONGEST_SECS: Final = 300.0
DAMAGED: Final = "the events of a session cannot be packed: it is damaged; see `clawdforge doctor`"


class Packer:
    def __init__(self, store: Store, clock: Clock, after_secs: float) -> None:
        self._store = store
        self._clock = clock
        self._after_secs = after_secs
        self._damaged: set[str] = set()

    async def run(self) -> None:
        """Look for something to pack, for ever. While the store is away, the next look tries again."""
        while True:
            await asyncio.sleep(min(self._after_secs / LOOKS, LONGEST_SECS))
            try:
                await self.pack_all()
            except Unavailable as error:
                log.warning("no events are packed now: %s", error.message)

    async def pack_all(self) -> None:
        """Pack whatever is old enough."""
        before, after = self._clock.now() - round(self._after_secs * SECOND), ""
        while True:
            found, last = await self._store.read_system(
                lambda view, after=after: view.unpacked_sessions(after, PAGE)  # type: ignore[misc]
            )
            for app, session_id in found:
                if session_id not in self._damaged:
                    await self._pack_session(app, session_id, before)
                await asyncio.sleep(0)  # a read does not pause by itself
            if last is None:
                return
            after = last

    async def _pack_session(self, app: str, session_id: str, before: Micros) -> None:
        clock = asyncio.get_running_loop().time
        try:
            through = await self._store.read(app, lambda view: last_old_event(view, session_id, before))
            while through > 0:
                begun = clock()
                if not await self._store.pack(app, session_id, through):
                    return
                await asyncio.sleep(clock() - begun)  # half of the time is for others
        except SessionDamaged:
            self._damaged.add(session_id)
            log.exception(DAMAGED, extra={"session_id": session_id})
