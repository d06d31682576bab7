"""Starts the next queued turn of a session, also where nobody knows whether an earlier one was started."""

import asyncio
from typing import Final

from clawdforge.core.clock import Clock
from clawdforge.core.ports import Store, Tx
from clawdforge.core.rules.interrupted import end_interrupted_turn
from clawdforge.core.rules.turns import StartedTurn, find_started, start_next
from clawdforge.core.running.elsewhere import Elsewhere
from clawdforge.core.running.worker import Worker
from clawdforge.wire.admin import WaitsFor
from clawdforge.wire.errors import StoreUnavailable

STORE_RETRY_SECS: Final = 0.5
NOT_SEEN_THROUGH: Final = "the server failed to run this turn to its end; what was said until then is kept"


class NextTurns:
    def __init__(self, store: Store, clock: Clock, elsewhere: Elsewhere) -> None:
        self.is_stopping = False  # nothing is started any more
        self._store = store
        self._clock = clock
        self._elsewhere = elsewhere

    async def start(self, worker: Worker) -> StartedTurn | None:
        """Start the next queued turn, if there is one. A prompt that comes in meanwhile is seen as well."""
        worker.progress.wait_for(WaitsFor.STORE)
        while not self.is_stopping:
            in_doubt, wakened, was_last = worker.start_in_doubt, worker.look_again, worker.was_last
            worker.start_in_doubt = worker.look_again = worker.was_last = False
            if was_last and not (in_doubt or wakened) and self._elsewhere.is_alone:
                return None  # whoever has queued a prompt since then says so when it is written
            try:
                started = await self._try_start(worker, in_doubt=in_doubt)
            except StoreUnavailable:
                worker.start_in_doubt = True
                await asyncio.sleep(STORE_RETRY_SECS)
                continue
            except BaseException:
                worker.start_in_doubt = worker.start_in_doubt or in_doubt
                raise
            if started is not None:
                worker.begin(started.turn.turn_index)
            if started is not None or not worker.look_again:
                return started
        return None

    async def write_owed_end(self, worker: Worker) -> None:
        """End a turn that ran here, and whose end could not be written then."""
        session_id, node, now = worker.session_id, self._elsewhere.node, self._clock.now()
        without_end = worker.without_end
        if without_end is None or self.is_stopping:
            return

        def work(tx: Tx) -> None:
            found = find_started(tx, session_id, node)
            if found is not None and found.turn.turn_index == without_end:
                end_interrupted_turn(tx, session_id, NOT_SEEN_THROUGH, now)

        await self._store.write(worker.app, work)
        worker.without_end = None

    async def _try_start(self, worker: Worker, *, in_doubt: bool) -> StartedTurn | None:
        """Start a turn if one is queued. Usually none is, so read first: that costs no commit."""
        await self.write_owed_end(worker)
        app, session_id = worker.app, worker.session_id
        if not in_doubt and not await self._store.read(app, lambda view: view.count_queued(session_id)):
            return None
        node, now = self._elsewhere.node, self._clock.now()

        def work(tx: Tx) -> StartedTurn | None:
            found = find_started(tx, session_id, node) if in_doubt else None
            return found or (start_next(tx, session_id, node, now, is_left=is_left) if may_start else None)

        is_left = self._elsewhere.is_left_here(session_id)
        may_start = self._elsewhere.may_start
        if self.is_stopping or not (may_start or in_doubt):
            return None
        if self._elsewhere.has_given_up:
            raise StoreUnavailable  # what is in doubt stays so until this node has its name again, or another
        return await self._store.write(app, work)
