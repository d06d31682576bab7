"""What one session is like at a moment, as plain values: its turns, what can be redone, and its head."""

from typing import Any, NamedTuple

QUEUED, RUNNING, WAITING, ENDED = "queued", "running", "waiting", "ended"
ACTIVE = (RUNNING, WAITING)
PENDING, EXPIRED = "pending", "expired"
OPTIONS = {"allow_once": "allow_once", "allow_always": "allow_always", "reject": "reject_once"}
"""What an agent is told for each decision."""


class Turn(NamedTuple):
    """`asked` is the permission: empty, pending, expired, or the decision.

    `answer` is None while it is not known, empty if there is none, and else the words after a colon: an agent
    that did something, and said nothing, has answered too.
    """

    key: str
    prompt: str
    script: str
    whole: str
    state: str = QUEUED
    outcome: str | None = None
    cut: bool = False
    asked: str = ""
    answer: str | None = None
    started: bool = False


class State(NamedTuple):
    """A session. `head` is exact if it is `pinned`; else agents may have said more than was seen."""

    turns: tuple[Turn, ...] = ()
    head: int = 1
    pinned: bool = True
    redo: tuple[tuple[int, ...], ...] = ()

    def active(self) -> int:
        """The index of the turn that runs or waits; 0 for none."""
        return next((at for at, turn in enumerate(self.turns, 1) if turn.state in ACTIVE), 0)

    def queued(self) -> list[int]:
        return [at for at, turn in enumerate(self.turns, 1) if turn.state == QUEUED]

    def visible(self) -> list[int]:
        return [at for at, turn in enumerate(self.turns, 1) if turn.started and not turn.cut]

    def change(self, at: int, **fields: Any) -> "State":
        turn = self.turns[at - 1]._replace(**fields)
        return self._replace(turns=(*self.turns[: at - 1], turn, *self.turns[at:]))

    def log(self, events: int = 1) -> "State":
        return self._replace(head=self.head + events)

    def observe(self, head: int) -> "State | None":
        """The state in which this head was seen, if it can have been."""
        if head < self.head or (self.pinned and head != self.head):
            return None
        return self._replace(head=head, pinned=not self.active())
