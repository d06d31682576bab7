"""Sessions that another node holds: it is told to look after them, and asked to stop a turn or to let go."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Final

from clawdforge.core.clock import Clock
from clawdforge.core.ids import new_id
from clawdforge.core.models.nodes import WishKind, WishRow
from clawdforge.core.models.rows import SessionRow, TurnRow
from clawdforge.core.ports import Store, SystemTx, Tx, View
from clawdforge.core.rules.leases import give_up, hand_over, is_held_elsewhere, let_go, take
from clawdforge.core.rules.placement import can_move
from clawdforge.core.rules.queue import find_next
from clawdforge.core.running.membership import Membership
from clawdforge.core.running.placement import Placement
from clawdforge.core.running.publisher import Publisher
from clawdforge.wire.errors import SessionBusy
from clawdforge.wire.nodes import NodeState
from clawdforge.wire.turn import Outcome, TurnState

log = logging.getLogger(__name__)
LOOK_SECS: Final = 0.5
"""What another node tells may be lost, so whoever waits for it looks this often."""
ASK_AGAIN: Final = 10


class Elsewhere:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        membership: Membership,
        publisher: Publisher | None = None,
        placement: Placement | None = None,
    ) -> None:
        self._placement = placement
        self._left_here: set[str] = set()  # sessions that the node of their folder has left to this one
        self._store = store
        self._publisher = publisher
        self._clock = clock
        self._membership = membership
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._leavers: list[Callable[[str, str], None]] = []
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
    def is_alone(self) -> bool:
        """Whether no other node lived a moment ago."""
        return self._membership.is_alone

    @property
    def has_given_up(self) -> bool:
        return self._membership.has_given_up

    def notice_stop(self) -> None:
        """Before it is judged why an agent is gone: this server may have been stopped for too long."""
        self._membership.notice_stop()

    @property
    def folder(self) -> str | None:
        return self._membership.folder

    def is_there(self, session: SessionRow | None) -> bool:
        """Whether another node is to run the session, as far as was known a moment ago."""
        return session is not None and self._membership.find_runner(session) is not None

    async def leave_to_runner(self, session: SessionRow | None, *, in_doubt: bool = False) -> bool:
        """Whether another node is to run the session; it is told that there is something to do.

        With `in_doubt`, a turn may have been started here, and nobody else could run that one. A node that
        drains finds out to whom it leaves a session when nothing is done in it any more.
        """
        if self._membership.is_draining and not in_doubt:
            return True
        if session is None:
            return False
        app, session_id, node = session.app_name, session.session_id, self.node
        runner = self._membership.find_runner(session, is_left=session_id in self._left_here)
        if runner is None:
            return not in_doubt and await self._leave_to_able(session)
        if not await self._store.read(app, lambda view: view.is_alive(runner)):
            return False  # it has ended since
        if session.holder == node:  # held for a change of its history, and its workspace is there
            await self._store.write(app, lambda tx: give_up(tx, session_id, node))
        self._tell(runner, app, session_id)
        return True

    async def is_lacking(self, session: SessionRow) -> bool:
        """Whether this node has not what the session needs: then somebody else may have it."""
        return self._placement is not None and await self._placement.find_lack(session) is not None

    async def need_all(self, session: SessionRow) -> None:
        """NowhereToRun when neither this node nor another has what the session needs."""
        if self._placement is not None:
            await self._placement.need_all(session)

    @property
    def agents(self) -> set[str]:
        """The agents that other nodes say that they can start."""
        return set() if self._placement is None else self._placement.list_agents()

    async def _leave_to_able(self, session: SessionRow) -> bool:
        """Whether the session needs what this node has not, and another node may have.

        If none has, its turn begins here, and says so.
        """
        placement, session_id = self._placement, session.session_id
        if placement is None or await placement.find_lack(session) is None:
            return False
        turn = await self._store.read(session.app_name, lambda view: find_next(view, session))
        if turn is None:
            return False
        placement.note(session_id, turn.turn_index)
        able = placement.find_able(session, turn.turn_index)
        if not able or not await placement.end_agent(session_id):
            return False
        if session.own_cwd and session.folder == self.folder:
            return await self.offer(session.app_name, session_id, anywhere=True)
        if session.holder == self.node:
            if not await self.publish(session_id):
                return True  # the next look finds it again
            node = self.node
            await self._store.write(session.app_name, lambda tx: give_up(tx, session_id, node))
        for other in able:
            self._tell(other, session.app_name, session_id)
        return True

    async def offer(self, app: str, session_id: str, *, anywhere: bool = False) -> bool:
        """Leave a session to another node that has room, or `anywhere` if it only has the agent, though its
        workspace is here. It may begin here all the same: whoever is first runs it.

        False when it has to stay: nobody could take it, or not its files.
        """
        placement, node = self._placement, self.node
        session = await self._store.read(app, lambda view: view.session(session_id))
        if placement is None or session is None or placement.is_home(session_id):
            return False
        cwd, taker = session.cwd, placement.find_taker(session, anywhere=anywhere)
        if taker is None or not session.own_cwd or session.folder != self.folder:
            return False
        if await self._store.read_system(lambda view: view.works_in(cwd, session_id)):
            return False
        if not await self.publish(session_id):
            return True  # later
        fence = session.fence

        def work(tx: Tx) -> bool:
            row = tx.session(session_id)
            if row is None or row.fence != fence or is_held_elsewhere(tx, row, node):
                return False  # a turn has begun since, so what was published is old
            if tx.active_turn(session_id) is not None or not can_move(tx, row):
                return False
            give_up(tx, session_id, node)
            tx.add_wish(replace(self._wish(row, WishKind.TAKE), node=taker))
            return True

        if placement.is_home(session_id) or not await self._store.write(app, work):
            return False
        self._tell(taker, app, session_id)
        return True

    def accept(self, session_id: str) -> None:
        """The node that has the session's workspace has left it to this one."""
        self._left_here.add(session_id)

    def is_left_here(self, session_id: str) -> bool:
        return session_id in self._left_here

    def note_waiting(self, sessions: set[str]) -> None:
        """Of these the next turn waits, and no other node holds them."""
        if self._placement is not None:
            self._placement.keep(sessions)

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

    def listen(self, leaver: Callable[[str, str], None]) -> None:
        """Called with the app and the session at each boundary in which this node is to leave it."""
        self._leavers.append(leaver)

    def note_boundary(self, app: str, session_id: str) -> None:
        """Nothing is done in a session any more."""
        self._left_here.discard(session_id)
        if self._membership.is_draining:
            for leaver in self._leavers:
                leaver(app, session_id)

    async def let_go(self, app: str, session_id: str) -> None:
        """Hold a session no longer whose agent is gone. Others may run it then, with its files, and also what
        waits in it when this node drains."""
        node, peers = self.node, self._store.peers
        if peers is None:
            return
        if not await self.publish(session_id):
            await asyncio.sleep(LOOK_SECS)  # whoever wanted it tries again at once
            raise SessionBusy("its files could not be published for other servers yet")
        if not self._membership.is_draining:
            if await self._store.write(app, lambda tx: let_go(tx, session_id, node)):
                peers.announce(session_id)
            return
        if await self._store.write(app, lambda tx: hand_over(tx, session_id, node)):
            self._tell(self._membership.find_taker(session_id), app, session_id)
        peers.announce(session_id)

    async def publish(self, session_id: str) -> bool:
        """Let others have the files of a session. False if that could not be done yet."""
        return self._publisher is None or await self._publisher.finish(session_id)

    async def is_first_and_empty(self, session: SessionRow, turn_index: int) -> bool:
        """Whether the end of a turn can say that others find an empty workspace."""
        return self._publisher is not None and await self._publisher.is_first_and_empty(session, turn_index)

    async def ask_all(self, kind: WishKind, app: str, session_id: str) -> None:
        """Have all other nodes do something. What one of them does not get to is left undone."""
        peers, here, now, wish_id = self._store.peers, self.node, self._clock.now(), new_id()
        if peers is None or self._membership.is_alone:
            return

        def work(tx: SystemTx) -> list[str]:
            others = [row.node for row in tx.nodes() if row.state is not NodeState.DEAD and row.node != here]
            for other in others:
                tx.add_wish(
                    WishRow(
                        wish_id=f"{wish_id}-{other}",
                        app_name=app,
                        session_id=session_id,
                        node=other,
                        kind=kind,
                        wished_at=now,
                    )
                )
            return others

        for other in await self._store.write_system(work):
            peers.tell(other, "", "")

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
