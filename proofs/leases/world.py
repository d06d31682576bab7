"""A cluster as small as it can be: one session, its turns, nodes, and jobs on their way to the store.

All of it are values, so that a state can be compared with those that were seen before.
"""

from enum import StrEnum
from typing import NamedTuple


class Violation(Exception):
    """Something that may never be was written."""


class Kind(StrEnum):
    JOIN = "join"
    BEAT = "beat"
    DECLARE = "declare dead"
    FORGET = "forget the dead"
    ADOPT = "adopt"
    START = "start"
    NOTE = "note the folder"
    SAY = "say"
    END = "end"
    LET_GO = "let go"
    GIVE_UP = "give up"
    LEAVE = "leave"


class Job(NamedTuple):
    """A transaction that a node has sent. Whatever it names was true when it was sent."""

    kind: Kind
    node: int
    name: str  # of the node, which has another one after it was given up
    turn: int = 0
    fence: int = 0
    target: str = ""  # of a declaration
    again: bool = False  # an earlier try may have been written
    is_fresh: bool = True  # the target of a declaration has not beaten since it was looked at


class Turn(NamedTuple):
    state: str = "queued"
    has_begun: bool = False  # as the log tells it
    has_ended: bool = False


class Run(NamedTuple):
    """A turn with a living agent, and how many of its words are written."""

    turn: int
    fence: int
    said: int = 0


class Node(NamedTuple):
    """A process; without a name it is not there."""

    name: str = ""
    is_member: bool = False
    job: Job | None = None
    run: Run | None = None
    seen: frozenset[str] = frozenset()  # other nodes whose last beat it knows
    in_doubt: bool = False  # a turn may have been started in its name


class Member(NamedTuple):
    name: str
    folder: str
    is_dead: bool = False


class World(NamedTuple):
    nodes: tuple[Node, ...]
    turns: tuple[Turn, ...]
    faults: int  # that may still happen
    folder: str | None = None  # where the session's workspace is
    members: tuple[Member, ...] = ()
    holder: str | None = None
    fence: int = 0
    written: int = 0
    late: tuple[Job, ...] = ()  # nobody waits for them any more; each may arrive at any time, or never
    names: int = 0  # that were given out

    @property
    def is_done(self) -> bool:
        return all(turn.has_ended for turn in self.turns)

    def lives(self, name: str) -> bool:
        return any(one.name == name and not one.is_dead for one in self.members)

    def find_node(self, folder: str) -> str | None:
        """Who lives and has this data folder."""
        return next((one.name for one in self.members if one.folder == folder and not one.is_dead), None)
