"""Which servers share the store, for operators."""

from dataclasses import dataclass

from clawdforge.core.model import Clock
from clawdforge.core.node_model import HOUSEKEEPING, NodeRow
from clawdforge.core.ports import Store, SystemView
from clawdforge.core.running.membership import Membership


@dataclass(frozen=True, slots=True)
class NodeStanding:
    row: NodeRow
    sessions: int
    is_this: bool
    is_on_duty: bool


class NodeService:
    def __init__(self, store: Store, clock: Clock, membership: Membership) -> None:
        self._store = store
        self._membership = membership
        self._alone = membership.describe(clock.now())

    async def list(self) -> list[NodeStanding]:
        """The first to start first. A server that shares its store with nobody is all there is."""

        def look(view: SystemView) -> tuple[list[NodeRow], dict[str, int], str | None]:
            return view.nodes(), view.held_counts(), view.who_does(HOUSEKEEPING)

        rows, counts, on_duty = await self._store.read_system(look)
        here = self._membership.node
        return [
            NodeStanding(row, counts.get(row.node, 0), row.node == here, row.node == (on_duty or here))
            for row in rows or [self._alone]
        ]
