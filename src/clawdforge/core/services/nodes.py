"""Which servers share the store, and which of them are to leave their work to the others; for operators."""

from dataclasses import dataclass
from typing import Final

from clawdforge.core.clock import Clock
from clawdforge.core.models.nodes import HOUSEKEEPING, NodeRow, Telling
from clawdforge.core.ports import Store, SystemTx, SystemView
from clawdforge.core.running.membership import NODES, Membership
from clawdforge.wire.errors import Conflict, NodeNotFound, Unsupported
from clawdforge.wire.nodes import NodeState

NOBODY: Final = (
    "this server shares its store with no other, so there is nobody to take over; stop it with SIGTERM, which"
    " lets its turns end first, or let no turn begin with `clawdforge pause`"
)
NOBODY_ELSE: Final = (
    "no other server lives that could take over; start one, or stop this one with SIGTERM, which lets its"
    " turns end first"
)


@dataclass(frozen=True, slots=True)
class NodeStanding:
    row: NodeRow
    sessions: int
    turns: int
    is_this: bool
    is_on_duty: bool
    tells: Telling
    differs: list[str]  # settings in which it is not as this one

    @property
    def is_drained(self) -> bool:
        is_idle = not self.sessions and not self.turns and not self.tells.runs
        return self.row.state is NodeState.DRAINING and is_idle


class NodeService:
    def __init__(self, store: Store, clock: Clock, membership: Membership) -> None:
        self._store = store
        self._clock = clock
        self._membership = membership
        self._alone = membership.describe(clock.now())

    @property
    def count(self) -> int:
        """How many servers live that share the store."""
        return self._membership.count

    async def list(self) -> list[NodeStanding]:
        """The first to start first. A server that shares its store with nobody is all there is."""
        here, own = self._membership.node, self._membership.tell()

        def look(view: SystemView) -> "list[NodeStanding]":
            held, running = view.held_counts(), view.running_counts()
            on_duty = view.who_does(HOUSEKEEPING) or here
            rows = [
                (row, own if row.node == here else Telling.read(row.tells))
                for row in view.nodes() or [self._alone]
            ]
            return [
                NodeStanding(
                    row,
                    held.get(row.node, 0),
                    running.get(row.node, 0),
                    row.node == here,
                    row.node == on_duty,
                    tells,
                    tells.differs_in(own),
                )
                for row, tells in rows
            ]

        return await self._store.read_system(look)

    async def drain(self, node: str, *, is_over: bool = False) -> NodeStanding:
        """Have a node leave its sessions to others, each at its next boundary; when it `is_over`, no more.

        Asked again, it changes nothing. A node that is started again begins turns.
        """
        now = self._clock.now()

        def work(tx: SystemTx) -> None:
            rows = {row.node: row for row in tx.nodes() if row.state is not NodeState.DEAD}
            if node not in rows:
                raise NodeNotFound
            others = [row for row in rows.values() if row.state is NodeState.UP and row.node != node]
            if not others and not is_over:
                raise Conflict(NOBODY_ELSE)
            if tx.drain(node, is_over=is_over):
                tx.audit_system("", "undrained" if is_over else "drained", now, {"node": rows[node].name})

        if self._store.peers is None:
            raise Unsupported(NOBODY)
        await self._store.write_system(work)
        self._store.peers.announce(NODES)
        await self._membership.look()
        return next(one for one in await self.list() if one.row.node == node)

    async def leave(self) -> bool:
        """Have this node leave its sessions to others before it ends; whether there are some."""
        node, peers = self._membership.node, self._store.peers
        if peers is None:
            return False
        await self._membership.look()  # one that came a moment ago is not known by a beat yet
        if not self._membership.others:
            return False
        await self._store.write_system(lambda tx: tx.drain(node))
        peers.announce(NODES)
        await self._membership.look()
        return self._membership.is_draining
