"""An event by its type: one class for each, so that a type checker knows the fields behind `event.type`."""

from typing import Any, Final, Literal, TypeAlias, cast

from clawdforge.wire.base import Json
from clawdforge.wire.event import Event
from clawdforge.wire.event_typed import (
    CommandListEvent,
    CompactionEvent,
    ConfigEvent,
    InfoEvent,
    ModeEvent,
    NoticeEvent,
    OtherEvent,
    PlanEvent,
    ResponseEvent,
    Sent,
    TextEvent,
    ThinkingEvent,
    ToolCallEvent,
    ToolUpdateEvent,
    Typed,
    UsageUpdateEvent,
    UserWordsEvent,
)

OutcomeWord: TypeAlias = Literal["completed", "cancelled", "failed", "timed_out", "interrupted"]


class SessionCreatedEvent(Typed):
    """The first event."""

    type: Literal["session.created"]
    agent = Sent[str]("")
    model = Sent[str | None](None)
    cwd = Sent[str]("")
    title = Sent[str]("")
    meta = Sent[Any](None)


class SessionChangedEvent(Typed):
    """Somebody changed the session."""

    type: Literal["session.changed"]
    changes = Sent[Json]({})
    keeps_context = Sent[bool](False)


class SessionClosedEvent(Typed):
    """The session was closed."""

    type: Literal["session.closed"]
    why = Sent[str]("")


class SessionReopenedEvent(Typed):
    """The session is open again."""

    type: Literal["session.reopened"]


class TurnQueuedEvent(Typed):
    """A prompt was accepted."""

    type: Literal["turn.queued"]
    prompt = Sent[str]("")
    files = Sent[list[str]]([])
    if_busy = Sent[str]("")
    retry_of = Sent[int | None](None)
    automatic = Sent[bool](False)
    limits = Sent[Json]({})


class TurnChangedInQueueEvent(Typed):
    """Somebody changed a turn that waits."""

    type: Literal["turn.changed"]
    prompt = Sent[str | None](None)
    files = Sent[list[str] | None](None)
    position = Sent[int | None](None)


class TurnStartedEvent(Typed):
    """It is this turn's time."""

    type: Literal["turn.started"]
    message = Sent[int](0)


class TurnRetriedEvent(Typed):
    """The prompt is given to an agent again."""

    type: Literal["turn.retried"]
    code = Sent[str]("")
    error = Sent[str]("")
    wait_secs = Sent[float](0.0)


class TurnEndedEvent(Typed):
    """The last event of a turn."""

    type: Literal["turn.ended"]
    outcome = Sent[OutcomeWord]("completed")
    stop_reason = Sent[str | None](None)
    error = Sent[str | None](None)
    code = Sent[str | None](None)
    usage = Sent[Json]({})
    duration_ms = Sent[int](0)
    message = Sent[int | None](None)
    stopped_by = Sent[str | None](None)
    retry_after = Sent[float | None](None)


class PermissionRequestedEvent(Typed):
    """The agent asks."""

    type: Literal["permission.requested"]
    permission_id = Sent[str]("")
    tool = Sent[str]("")
    kind = Sent[str]("")
    options = Sent[list[Json]]([])
    request = Sent[Json]({})


class PermissionDecidedEvent(Typed):
    """What was decided, and by whom."""

    type: Literal["permission.decided"]
    permission_id = Sent[str]("")
    tool = Sent[str]("")
    decision = Sent[str]("")
    by = Sent[str]("")
    reason = Sent[str | None](None)


class HistoryCutEvent(Typed):
    """Turns were taken back."""

    type: Literal["history.cut"]
    messages = Sent[list[int]]([])
    turns = Sent[list[int]]([])
    why = Sent[str]("")
    context = Sent[int | None](None)


class HistoryRestoredEvent(Typed):
    """They were brought back."""

    type: Literal["history.restored"]
    messages = Sent[list[int]]([])
    turns = Sent[list[int]]([])
    cut = Sent[int | None](None)
    context = Sent[int | None](None)


class HistoryClearedEvent(Typed):
    """The transcript was archived."""

    type: Literal["history.cleared"]
    messages = Sent[int](0)
    context = Sent[int | None](None)


class HistoryCompactedEvent(Typed):
    """A summary replaced the transcript."""

    type: Literal["history.compacted"]
    messages = Sent[int](0)
    summary = Sent[str]("")
    message = Sent[int](0)
    context = Sent[int | None](None)


class ContextStartedEvent(Typed):
    """The agent has a memory of this session."""

    type: Literal["context.started"]
    number = Sent[int](0)
    how = Sent[str]("")
    agent = Sent[str]("")


class MessagePostedEvent(Typed):
    """A message was stored without a turn."""

    type: Literal["message.posted"]
    message = Sent[int](0)
    role = Sent[str]("")


class MessageBroughtEvent(Typed):
    """A message that an import or a fork began with."""

    type: Literal["message.brought"]
    row = Sent[Json]({})


class TurnBroughtEvent(Typed):
    """A turn that an import or a fork began with."""

    type: Literal["turn.brought"]
    row = Sent[Json]({})


class OutputTruncatedEvent(Typed):
    """Output of the agent was dropped."""

    type: Literal["output.truncated"]
    dropped_bytes = Sent[int](0)
    reason = Sent[str]("")


class BudgetWarnedEvent(Typed):
    """A budget came to its warning."""

    type: Literal["budget.warned"]
    budget_id = Sent[str]("")
    scope = Sent[str]("")
    id = Sent[str]("")
    period = Sent[str]("")
    warn_at = Sent[float](0.0)
    tokens = Sent[int](0)
    cost_usd = Sent[float](0.0)


AnyEvent: TypeAlias = (
    TextEvent
    | ThinkingEvent
    | UserWordsEvent
    | ToolCallEvent
    | ToolUpdateEvent
    | PlanEvent
    | ModeEvent
    | CommandListEvent
    | ConfigEvent
    | InfoEvent
    | UsageUpdateEvent
    | NoticeEvent
    | CompactionEvent
    | ResponseEvent
    | OtherEvent
    | SessionCreatedEvent
    | SessionChangedEvent
    | SessionClosedEvent
    | SessionReopenedEvent
    | TurnQueuedEvent
    | TurnChangedInQueueEvent
    | TurnStartedEvent
    | TurnRetriedEvent
    | TurnEndedEvent
    | PermissionRequestedEvent
    | PermissionDecidedEvent
    | HistoryCutEvent
    | HistoryRestoredEvent
    | HistoryClearedEvent
    | HistoryCompactedEvent
    | ContextStartedEvent
    | MessagePostedEvent
    | MessageBroughtEvent
    | TurnBroughtEvent
    | OutputTruncatedEvent
    | BudgetWarnedEvent
)
"""What a stream hands out: `if event.type == "turn.ended":` and the checker knows `event.outcome`."""

KINDS: Final[dict[str, type[Typed]]] = {
    "text": TextEvent,
    "thinking": ThinkingEvent,
    "user": UserWordsEvent,
    "tool_call": ToolCallEvent,
    "tool_update": ToolUpdateEvent,
    "plan": PlanEvent,
    "mode": ModeEvent,
    "commands": CommandListEvent,
    "config": ConfigEvent,
    "info": InfoEvent,
    "usage": UsageUpdateEvent,
    "notice": NoticeEvent,
    "compaction": CompactionEvent,
    "response": ResponseEvent,
    "other": OtherEvent,
    "session.created": SessionCreatedEvent,
    "session.changed": SessionChangedEvent,
    "session.closed": SessionClosedEvent,
    "session.reopened": SessionReopenedEvent,
    "turn.queued": TurnQueuedEvent,
    "turn.changed": TurnChangedInQueueEvent,
    "turn.started": TurnStartedEvent,
    "turn.retried": TurnRetriedEvent,
    "turn.ended": TurnEndedEvent,
    "permission.requested": PermissionRequestedEvent,
    "permission.decided": PermissionDecidedEvent,
    "history.cut": HistoryCutEvent,
    "history.restored": HistoryRestoredEvent,
    "history.cleared": HistoryClearedEvent,
    "history.compacted": HistoryCompactedEvent,
    "context.started": ContextStartedEvent,
    "message.posted": MessagePostedEvent,
    "message.brought": MessageBroughtEvent,
    "turn.brought": TurnBroughtEvent,
    "output.truncated": OutputTruncatedEvent,
    "budget.warned": BudgetWarnedEvent,
}


def narrow(event: Event) -> AnyEvent:
    """The same event, of the class of its type."""
    kind = KINDS.get(event.type)
    found = kind.model_validate(event.model_dump(exclude_unset=True)) if kind else event
    return cast("AnyEvent", found)
