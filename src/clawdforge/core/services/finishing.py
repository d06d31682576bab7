"""Finishes long changes of histories in the background: marks rows and refreshes the full-text index.

A long undo, clear or fork counts from its own commit on. What is left to do is done here in slices, one job
each, with a rest after every job, so that nobody waits for more than one. It is found in the store, so after
a crash the next start goes on with it. A damaged session is left as it is until then and costs no other.
"""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from clawdforge.core.models.rows import Commit, SessionRow
from clawdforge.core.ports import Store, Tx
from clawdforge.core.running.elsewhere import Elsewhere
from clawdforge.core.running.long_writes import LongWrite
from clawdforge.wire.errors import ForgeError, SessionDamaged
from clawdforge.wire.event import EventType

log = logging.getLogger(__name__)
PAGE = 100
TRY_AGAIN_SECS = 1.0
DAMAGED = "a long change of a history is not finished: the session is damaged; see `clawdforge doctor`"
CHANGES = frozenset(
    {
        EventType.HISTORY_CUT,
        EventType.HISTORY_RESTORED,
        EventType.HISTORY_CLEARED,
        EventType.HISTORY_COMPACTED,
        EventType.SESSION_CREATED,  # a fork
    }
)
"""Events of changes that may leave something to do."""


class Finisher:
    """`elsewhere` knows which sessions are held by other nodes: one may be preparing a restore there."""

    def __init__(self, store: Store, elsewhere: Elsewhere | None = None) -> None:
        self._store = store
        self._elsewhere = elsewhere
        self._work = asyncio.Event()
        self._work.set()  # what an earlier server left
        self._held: set[str] = set()
        self._damaged: set[str] = set()
        store.listen(self._on_commit)

    @contextmanager
    def hold(self, session_id: str) -> Iterator[None]:
        """Leave a session alone while its rows are being prepared for a restore."""
        self._held.add(session_id)
        try:
            yield
        finally:
            self._held.discard(session_id)
            self._work.set()

    async def run(self) -> None:
        """Do what there is to do, for ever. When the store fails, it is tried again."""
        while True:
            await self._work.wait()
            self._work.clear()
            try:
                await self.finish_all()
            except ForgeError:
                log.warning("a long change of a history could not be finished yet; it is tried again")
                self._work.set()
                await asyncio.sleep(TRY_AGAIN_SECS)

    async def finish_all(self) -> None:
        left: set[str] = set()
        while found := await self._unfinished(left):
            for app, session_id in found:
                try:
                    if not await self.finish(app, session_id):
                        left.add(session_id)
                except SessionDamaged:
                    self._damaged.add(session_id)
                    log.exception(DAMAGED, extra={"session_id": session_id})
        for app in await self._store.read_system(lambda view: view.unindexed_apps()):
            try:
                await LongWrite(self._store, app).repeat(lambda tx: tx.refresh_index())
            except SessionDamaged:
                log.exception("the search index of app %s is damaged; see `clawdforge doctor`", app)

    async def finish(self, app: str, session_id: str) -> bool:
        """Finish what was begun with this session. False, and at once, if it is held, here or elsewhere."""

        def is_left_alone(tx: Tx, session: SessionRow) -> bool:
            there = self._elsewhere
            return session_id in self._held or (there is not None and there.holds(tx, session))

        def step(tx: Tx) -> bool:
            session = tx.session(session_id)
            return session is None or is_left_alone(tx, session) or tx.finish_change(session_id)

        await LongWrite(self._store, app).repeat(step)
        return await self._store.read(app, lambda view: view.has_finished_changes(session_id))

    def _on_commit(self, commit: Commit) -> None:
        if not CHANGES.isdisjoint(commit.types):
            self._work.set()

    async def _unfinished(self, left: set[str]) -> list[tuple[str, str]]:
        left_alone = self._held | self._damaged | left
        limit = PAGE + len(left_alone)
        found = await self._store.read_system(lambda view: view.unfinished_sessions(limit))
        return [pair for pair in found if pair[1] not in left_alone]
