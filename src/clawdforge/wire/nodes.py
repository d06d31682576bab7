"""The servers that share one database, as `GET /admin/nodes` shows them."""

from enum import StrEnum

from clawdforge.wire.base import Reply


class NodeState(StrEnum):
    UP = "up"
    DEAD = "dead"  # for good: its next start has another id


class Node(Reply):
    """One start of a server. `sessions` are those that it holds: their turns run there."""

    node: str
    name: str
    version: str
    started_at: float
    state: NodeState
    sessions: int
    is_this: bool
    is_on_duty: bool


class NodePage(Reply):
    ok: bool = True
    nodes: list[Node]
    count: int
