"""A turn: one prompt until a stop reason. queued → running ⇄ waiting → ended."""

from enum import StrEnum
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import Field, StringConstraints, model_validator

from clawdforge.wire.base import Json, Reply, Request


class TurnState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    ENDED = "ended"


class Outcome(StrEnum):
    """How a turn ended; every turn has exactly one."""

    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    INTERRUPTED = "interrupted"


class IfBusy(StrEnum):
    """What happens to a prompt while another turn runs."""

    QUEUE = "queue"
    REJECT = "reject"
    INTERRUPT = "interrupt"
    STEER = "steer"
    ROLLBACK = "rollback"


IfBusyWord: TypeAlias = IfBusy | Literal["queue", "reject", "interrupt", "steer", "rollback"]


MOVES: Final[dict[TurnState, frozenset[TurnState]]] = {
    TurnState.QUEUED: frozenset({TurnState.RUNNING, TurnState.ENDED}),
    TurnState.RUNNING: frozenset({TurnState.WAITING, TurnState.ENDED}),
    TurnState.WAITING: frozenset({TurnState.RUNNING, TurnState.ENDED}),
    TurnState.ENDED: frozenset(),
}
"""The whole state machine of a turn."""

Prompt = Annotated[str, StringConstraints(min_length=1, max_length=16 * 1024 * 1024)]
MAX_TOOL_CALLS: Final = 100_000
FileToken = Annotated[str, StringConstraints(min_length=1, max_length=128)]


class TurnRequest(Request):
    """Body of `POST /sessions/{id}/turn` and `/turns`. A turn that crosses one of its limits is stopped."""

    prompt: Prompt
    files: list[FileToken] | None = Field(default=None, max_length=256)
    timeout_secs: float | None = Field(default=None, gt=0, le=7 * 86_400, allow_inf_nan=False)
    if_busy: IfBusy = IfBusy.QUEUE
    expected_head: int | None = Field(default=None, ge=0)
    max_cost_usd: float | None = Field(default=None, ge=0, le=10**9, allow_inf_nan=False)
    max_tokens: int | None = Field(default=None, ge=0, le=2**53)
    max_seconds: float | None = Field(default=None, gt=0, le=7 * 86_400, allow_inf_nan=False)
    max_tool_calls: int | None = Field(default=None, ge=0, le=MAX_TOOL_CALLS)

    def limits(self) -> Json:
        """Those that are given."""
        given = {name: getattr(self, name) for name in TurnLimits.model_fields}
        return {name: value for name, value in given.items() if value is not None}


class ChangeTurn(Request):
    """Body of `PATCH /sessions/{id}/turns/{n}`: what is to change about a turn that waits.

    `position` is its place in the queue, 0 for the next. With `expected_prompt` nothing is changed if the
    prompt is another one by now.
    """

    prompt: Prompt | None = None
    files: list[FileToken] | None = Field(default=None, max_length=256)
    position: int | None = Field(default=None, ge=0, le=2**31)
    expected_prompt: str | None = None


class TurnLimits(Reply):
    """What a turn may use; null is no limit. To use just as much is no crossing."""

    max_cost_usd: float | None = None
    max_tokens: int | None = None
    max_seconds: float | None = None
    max_tool_calls: int | None = None


class Usage(Reply):
    """Tokens and money; `cached_tokens` were read from a cache and are beside `input_tokens`.

    `estimated` is true when a number was counted or computed here, or tells of only a part of the turn;
    `cost_estimated` when the cost is ours, from a table of prices. `counter` holds the running totals of an
    agent that counts on from turn to turn.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    total_tokens: int = 0
    cost_usd: float | None = None
    estimated: bool = False
    cost_estimated: bool = False
    counter: Json | None = None


class Turn(Reply):
    """A turn as the queue and the history show it. Times are whole seconds.

    `limits` are those that it carries, and `stopped_by` names the one that it crossed. `position` is the
    place of a queued turn, 0 for the next. `heard` is false when it ended before anybody had begun to answer:
    its prompt can be sent again, after `retry_after` seconds where that is known.
    """

    turn_index: int
    state: TurnState
    position: int | None = None
    outcome: Outcome | None = None
    stop_reason: str | None = None
    error: str | None = None
    code: str | None = None
    heard: bool | None = None
    retry_after: float | None = None
    prompt: str
    files: list[str] = Field(default_factory=list)
    retry_of: int | None = None
    cut: bool = False
    queued_at: int
    started_at: int | None = None
    ended_at: int | None = None
    duration_ms: int | None = None
    first_seq: int | None = None
    last_seq: int | None = None
    usage: Usage | None = None
    limits: TurnLimits | None = None
    stopped_by: str | None = None


class TurnSummary(Reply):
    """How a turn ended: a `TurnReply` up to its events, which the server sends as ready bytes.

    `stopped_by` names the limit that it crossed.
    """

    ok: bool = True
    session_id: str
    turn_index: int
    stop_reason: str | None
    outcome: Outcome
    duration_ms: int
    if_busy: IfBusy
    usage: Usage | None = None
    stopped_by: str | None = None


class TurnReply(TurnSummary):
    """The whole turn: what `POST …/turn` answers. `events` are the agent's messages, in order."""

    events: list[Json]


class TurnAccepted(Reply):
    """202: the prompt is on stable storage. `if_busy` names the policy that was applied."""

    ok: bool = True
    session_id: str
    turn_index: int
    state: TurnState
    if_busy: IfBusy
    head: int
    replayed: bool = False


class TurnChanged(Turn):
    """A queued turn as it is after a change."""

    ok: bool = True
    session_id: str


class TurnPage(Reply):
    ok: bool = True
    session_id: str
    turns: list[Turn]
    count: int
    next: int | None = None


class CancelReply(Reply):
    """`cancelled` counts the turns that this call ended: the running one and those it took from the queue."""

    ok: bool = True
    session_id: str
    cancelled: int


class CancelRequest(Request):
    """With `queued` the waiting turns are taken out as well. With `turn` that one ends and no other."""

    queued: bool = False
    turn: int | None = Field(default=None, ge=1, le=2**53)

    @model_validator(mode="after")
    def _is_one_kind(self) -> Self:
        if self.queued and self.turn is not None:
            raise ValueError("give either queued or turn")
        return self


class Decision(StrEnum):
    ALLOW_ONCE = "allow_once"
    ALLOW_ALWAYS = "allow_always"
    REJECT = "reject"


DecisionWord: TypeAlias = Decision | Literal["allow_once", "allow_always", "reject"]
PermissionState: TypeAlias = Literal["pending", "decided", "expired"]


class DecideRequest(Request):
    decision: Decision
    option_id: str | None = Field(default=None, max_length=256)


OPTION_ID: Final = "optionId"
"""The name of an option in `options`, as its agent gave it; the dialects have published it so."""


class Permission(Reply):
    """A request of the agent and, once there is one, somebody's decision. Times are whole seconds."""

    permission_id: str
    session_id: str
    turn_index: int
    tool: str
    kind: str | None = None
    request: Json
    options: list[Any] = Field(default_factory=list)
    state: PermissionState
    decision: str | None = None
    reason: str | None = None
    requested_at: int
    decided_at: int | None = None


class PermissionPage(Reply):
    ok: bool = True
    session_id: str
    permissions: list[Permission]
    count: int


class AppPermission(Permission):
    """A request with the session that it belongs to. Undecided, it is refused at `expires_at`."""

    title: str = ""
    agent: str = ""
    expires_at: int | None = None


class AppPermissionPage(Reply):
    """What agents ask for in all of an app's sessions, oldest first; `next` is the next page's cursor."""

    ok: bool = True
    permissions: list[AppPermission]
    count: int
    next: str | None = None


class PermissionReply(Reply):
    ok: bool = True
    permission: Permission
