"""The servers that share one database, as `GET /admin/nodes` shows them."""

from enum import StrEnum

from pydantic import Field

from clawdforge.wire.base import Reply


class NodeState(StrEnum):
    UP = "up"
    DRAINING = "draining"  # it begins no turns, and leaves its sessions to others
    DEAD = "dead"  # for good: its next start has another id


class Node(Reply):
    """One start of a server. `sessions` are those that it holds: their turns run there, `turns` of them now.

    `agents` live there, and `runs` are one-shot runs, both as of its last beat. `is_drained` says that it was
    to be drained, and that nothing is left there. `differs` names settings that all servers of a database
    should share, and that are others there than at the server that answers.
    """

    node: str
    name: str
    version: str
    started_at: float
    state: NodeState
    sessions: int
    turns: int
    agents: int = 0
    runs: int = 0
    is_this: bool
    is_on_duty: bool
    is_drained: bool
    differs: list[str] = Field(default_factory=list)


class NodeReply(Reply):
    ok: bool = True
    node: Node


class NodePage(Reply):
    ok: bool = True
    nodes: list[Node]
    count: int
