"""What clients of the simulated server know: their sessions, what they were answered, how far they came.

It outlives a crash, as clients do.
"""

from dataclasses import dataclass, field

from clawdforge.core.models.events import StoredEvent
from proofs.simulation.plans import Plan


@dataclass(frozen=True, slots=True)
class Known:
    """A session that a client was told of."""

    app: str
    session_id: str


@dataclass(frozen=True, slots=True)
class Ack:
    """A request that was answered with success: the event `seq` of the session's log must be of this type."""

    session_id: str
    seq: int
    type: str


@dataclass(frozen=True, slots=True)
class Submitted:
    session_id: str
    key: str
    prompt: str
    turn: int


@dataclass
class Reader:
    """Follows one session; `copy` is all it has seen."""

    slot: int
    copy: list[StoredEvent] = field(default_factory=list)
    is_over: bool = False


@dataclass
class Story:
    sessions: list[Known]
    cursors: list[int]
    readers: list[Reader]
    acks: list[Ack] = field(default_factory=list)
    submitted: list[Submitted] = field(default_factory=list)
    decided: dict[str, str] = field(default_factory=dict)  # permission → decision
    deleted: set[str] = field(default_factory=set)

    @classmethod
    def begin(cls, plan: Plan) -> "Story":
        return cls([], [0] * len(plan.clients), [Reader(slot) for slot in plan.readers])
