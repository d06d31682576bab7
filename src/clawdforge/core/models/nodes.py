"""Nodes that share one store, and what one of them wishes another to do."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from clawdforge.wire.base import Json, Micros
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
    tells: Json = field(default_factory=dict)  # of itself with each beat: see `Telling`


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """What a node tells of itself: live agents, one-shot runs, settings as digests, and what it can run."""

    agents: int = 0
    runs: int = 0
    settings: Json = field(default_factory=dict)
    free: int = 0  # places for agents that no turn needs
    usable: list[str] | None = None  # agents that can be started there; None: it does not say
    cannot: list[str] = field(default_factory=list)  # turns that wait: see `rules/placement.py`
    answers: bool = False  # questions of others: see `running/questions.py`

    @classmethod
    def read(cls, tells: Json) -> "Telling":
        """What an older or newer node tells may lack some of it."""
        return cls(
            agents=tells.get("agents", 0),
            runs=tells.get("runs", 0),
            settings=tells.get("settings", {}),
            free=tells.get("free", 0),
            usable=tells.get("usable"),
            cannot=tells.get("cannot", []),
            answers=tells.get("answers", False),
        )

    def differs_in(self, other: "Telling") -> list[str]:
        """The settings that both tell of, and that are not the same."""
        both = self.settings.keys() & other.settings.keys()
        return sorted(name for name in both if self.settings[name] != other.settings[name])


class WishKind(StrEnum):
    CANCEL = "cancel"  # the running turn
    LEAVE = "leave"  # end the agent at the turn's boundary, and hold the session no longer
    REMOVE_HOME = "remove_home"  # of a session that was deleted
    REMOVE_WORKSPACE = "remove_workspace"  # likewise; the session whose name the folder has is told
    REMOVE_UPLOAD = "remove_upload"  # which is told as the session
    TAKE = "take"  # run a session whose workspace is published, and whose node has no room or no such agent
    RECORD_FILES = "record_files"  # of a session that the asking node holds; the answer names two trees
    RESTORE_FILES = "restore_files"  # likewise, to one of them
    ANSWER = "answer"  # to one of these two
    STOP_RUNS = "stop_runs"  # of an app, or all, and of an agent, which is told as the session


@dataclass(frozen=True, slots=True, kw_only=True)
class WishRow:
    """What the holder of a session is to do with it, or any node with what it has of one."""

    wish_id: str
    app_name: str
    session_id: str
    node: str
    kind: WishKind
    wished_at: Micros
    turn_index: int | None = None
    rollback: bool = False
    body: str | None = None  # of a question and its answer: see `running/questions.py`


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeRow:
    """A code that logs a browser in once, at any node."""

    hash: bytes
    app_name: str
    token_id: str
    ends_at: Micros
