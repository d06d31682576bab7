"""Sessions that another node holds: it is told to look after them, and asked to stop a turn or to let go."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from clawdforge.core.model import Clock, SessionRow, TurnRow, new_id
from clawdforge.core.node_model import WishKind, WishRow
from clawdforge.core.ports import Store, Tx, View
from clawdforge.core.rules.leases import give_up, is_held_elsewhere, let_go, take
from clawdforge.core.running.membership import Membership
from clawdforge.wire.errors import SessionBusy
from clawdforge.wire.turn import Outcome, TurnState

log = logging.getLogger(__name__)
LOOK_SECS: Final = 0.5
"""What another node tells may be lost, so whoever waits for it looks this often."""
ASK_AGAIN: Final = 10


class Elsewhere:
    def __init__(self, store: Store, clock: Clock, membership: Membership) -> None:
        self._store = store
        self._clock = clock
        self._membership = membership
        self._waiting: dict[str, set[asyncio.Event]] = {}
        if store.peers is not None:
            store.listen(lambda commit: self._wake_waiting(commit.session_id))
            store.peers.heed(self._wake_waiting)

    @property
    def node(self) -> str:
        return self._membership.node

    def holds(self, view: View, session: SessionRow) -> bool:
        """Whether another node that lives holds the session, as the store knows it."""
        return self._membership.has_peers and is_held_elsewhere(view, session, self.node)

    @property
    def may_start(self) -> bool:
        return self._membership.may_start

    @property
    def folder(self) -> str | None:
        return self._membership.folder

    def is_there(self, session: SessionRow | None) -> bool:
        """Whether another node is to run the session, as far as was known a moment ago."""
        return session is not None and self._membership.find_runner(session) is not None

    async def leave_to_runner(self, session: SessionRow | None) -> bool:
        """Whether another node is to run the session; it is told that there is something to do."""
        runner = None if session is None else self._membership.find_runner(session)
        if session is None or runner is None:
            return False
        app, session_id, node = session.app_name, session.session_id, self.node
        if not await self._store.read(app, lambda view: view.is_alive(runner)):
            return False  # it has ended since
        if session.holder == node:  # held for a change of its history, and its workspace is there
            await self._store.write(app, lambda tx: give_up(tx, session_id, node))
        self._tell(runner, app, session_id)
        return True

    async def cancel(self, app: str, session_id: str, turn_index: int | None, *, rollback: bool) -> bool:
        """Have the turn stopped that runs at another node, and wait until it has ended."""
        if not self._membership.has_peers:
            return False

        def make(tx: Tx, session: SessionRow) -> WishRow | None:
            active = tx.active_turn(session_id)
            if active is None or turn_index not in (None, active.turn_index):
                return None
            return self._wish(session, WishKind.CANCEL, active.turn_index, rollback=rollback)

        wish = await self._send(app, session_id, make)
        if wish is None:
            return False

        def look(view: View) -> TurnRow | None:
            return view.turn_outline(session_id, wish.turn_index or 0)

        waits = 0
        while (turn := await self._store.read(app, look)) is not None and turn.state is not TurnState.ENDED:
            await self._wait(session_id)
            waits += 1
            if waits % ASK_AGAIN == 0:  # the wish may be lost with the answer to whoever took it
                await self._send(app, session_id, make)
        return turn is not None and turn.outcome is Outcome.CANCELLED

    async def ask_to_leave(self, app: str, session_id: str, *, but: str | None = None) -> str | None:
        """Have another node, `but` this one, let go of the session at the next boundary; which one it is."""

        def make(_: Tx, session: SessionRow) -> WishRow | None:
            return None if session.holder == but else self._wish(session, WishKind.LEAVE)

        wish = await self._send(app, session_id, make) if self._membership.has_peers else None
        return but if wish is None else wish.node

    async def bring_here(self, app: str, session_id: str, within: float) -> None:
        """Become the holder, for what only one may do at a time. SessionBusy when another does not let go."""
        if not self._membership.has_peers:
            return
        node, asked = self.node, None
        try:
            async with asyncio.timeout(within):
                while not await self._store.write(app, lambda tx: take(tx, session_id, node)):
                    asked = await self.ask_to_leave(app, session_id, but=asked)
                    await self._wait(session_id)
        except TimeoutError:
            raise SessionBusy from None

    async def let_go(self, app: str, session_id: str) -> None:
        """Hold a session no longer whose agent is gone. Others may run it then."""
        node = self.node
        if self._store.peers is not None and await self._store.write(
            app, lambda tx: let_go(tx, session_id, node)
        ):
            self._store.peers.announce(session_id)

    async def _send(
        self, app: str, session_id: str, make: Callable[[Tx, SessionRow], WishRow | None]
    ) -> WishRow | None:
        """Write a wish to whoever holds the session; None when no other node does, or there is none."""
        node = self.node

        def work(tx: Tx) -> WishRow | None:
            session = tx.session(session_id)
            if session is None or not is_held_elsewhere(tx, session, node):
                return None
            wish = make(tx, session)
            if wish is not None:
                tx.add_wish(wish)
            return wish

        wish = await self._store.write(app, work)
        if wish is not None:
            self._tell(wish.node, app, session_id)
        return wish

    def _wish(
        self, session: SessionRow, kind: WishKind, turn_index: int | None = None, *, rollback: bool = False
    ) -> WishRow:
        return WishRow(
            wish_id=new_id(),
            app_name=session.app_name,
            session_id=session.session_id,
            node=session.holder or "",
            kind=kind,
            wished_at=self._clock.now(),
            turn_index=turn_index,
            rollback=rollback,
        )

    def _tell(self, node: str | None, app: str, session_id: str) -> None:
        if self._store.peers is not None and node is not None:
            self._store.peers.tell(node, app, session_id)

    async def _wait(self, session_id: str) -> None:
        """Until something of the session has changed, perhaps, or a moment has passed."""
        changed = asyncio.Event()
        self._waiting.setdefault(session_id, set()).add(changed)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECS):
                    await changed.wait()
        finally:
            self._waiting[session_id].discard(changed)
            if not self._waiting[session_id]:
                del self._waiting[session_id]

    def _wake_waiting(self, session_id: str) -> None:
        for changed in self._waiting.get(session_id, ()):
            changed.set()
