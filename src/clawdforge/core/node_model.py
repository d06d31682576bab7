"""Nodes that share one store, and what one of them wishes another to do."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from clawdforge.wire.base import Micros
from clawdforge.wire.nodes import NodeState

HOUSEKEEPING: Final = "housekeeping"
"""The duty of whoever sweeps, packs and delivers for all nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """One start of a server. `beat` grows while it lives; nobody compares clocks."""

    node: str
    name: str  # for people
    folder: str  # which data folder it has; its lock admits one server at a time
    version: str
    started_at: Micros
    beat: int = 0
    state: NodeState = NodeState.UP


class WishKind(StrEnum):
    CANCEL = "cancel"  # the running turn
    LEAVE = "leave"  # end the agent at the turn's boundary, and hold the session no longer


@dataclass(frozen=True, slots=True, kw_only=True)
class WishRow:
    """What the holder of a session is to do with it."""

    wish_id: str
    app_name: str
    session_id: str
    node: str
    kind: WishKind
    wished_at: Micros
    turn_index: int | None = None
    rollback: bool = False
