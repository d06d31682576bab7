"""The tree of a session: its turns with those that they follow, and the sessions that were forked there."""

from pydantic import Field

from clawdforge.wire.base import Reply
from clawdforge.wire.turn import Outcome, TurnState


class ForkOrigin(Reply):
    """The session that this one was forked from; both have the same history up to `after_turn`."""

    session_id: str
    after_turn: int | None = None


class ForkInfo(Reply):
    session_id: str
    title: str = ""


class TreeTurn(Reply):
    """A turn, the beginning of its prompt, and the turn that it was said after: null for a first one.

    A turn that was taken back is `cut`. Times are whole seconds.
    """

    turn_index: int
    parent: int | None = None
    cut: bool = False
    state: TurnState
    outcome: Outcome | None = None
    prompt: str = ""
    queued_at: int
    forks: list[ForkInfo] = Field(default_factory=list)


class TreeReply(Reply):
    """`forks` were made before the first turn and stand on the first page; `next` is the next `after`."""

    ok: bool = True
    session_id: str
    forked_from: ForkOrigin | None = None
    turns: list[TreeTurn]
    forks: list[ForkInfo] = Field(default_factory=list)
    next: int | None = None
