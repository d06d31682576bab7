"""What a turn and a one-shot run came to, read tolerantly: whatever is missing or odd does no harm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from clawdforge.client import _lazy as lazy
from clawdforge.client.errors import BY_CODE, AgentFailed

if TYPE_CHECKING:
    from clawdforge.wire.event import Event, EventType
    from clawdforge.wire.turn import Usage


@dataclass(frozen=True, slots=True)
class TurnResult:
    """One turn, whole. `events` are the agent's messages in order, as dicts.

    `outcome` says how it ended (`completed`, `cancelled`, `failed`, `timed_out`, `interrupted`) and
    `ok` is true for the first two. `stopped_by` names the limit that it crossed. A key that a newer server
    adds is in `body`.
    """

    ok: bool
    session_id: str
    turn_index: int
    stop_reason: str | None
    duration_ms: int
    events: list[Any]
    outcome: str = "completed"
    error: str | None = None
    code: str | None = None
    usage: Usage | None = None
    if_busy: str | None = None
    stopped_by: str | None = None
    body: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_response(cls, body: Mapping[str, Any]) -> Self:
        """From the server's answer; what is missing or odd gets a plain default."""
        events = body.get("events")
        usage = body.get("usage")
        return cls(
            ok=bool(body.get("ok", True)),
            session_id=_text(body.get("session_id")),
            turn_index=_whole(body.get("turn_index")),
            stop_reason=_text_or_none(body.get("stop_reason")),
            duration_ms=_whole(body.get("duration_ms")),
            events=list(events) if isinstance(events, list) else [],
            outcome=_text(body.get("outcome")) or "completed",
            error=_text_or_none(body.get("error")),
            code=_text_or_none(body.get("code")),
            usage=lazy.turn.Usage.model_validate(usage) if isinstance(usage, dict) else None,
            if_busy=_text_or_none(body.get("if_busy")),
            stopped_by=_text_or_none(body.get("stopped_by")),
            body=body,
        )

    @classmethod
    def from_events(cls, session_id: str, turn_index: int, events: Sequence[Event]) -> Self:
        """From the events of one turn, read as they came; the last one is `turn.ended`."""
        ended = events[-1].model_dump() if events else {}
        outcome = _text(ended.get("outcome"))
        return cls.from_response(
            {
                **ended,
                "ok": outcome in (lazy.turn.Outcome.COMPLETED, lazy.turn.Outcome.CANCELLED),
                "session_id": session_id,
                "turn_index": turn_index,
                "events": [event.model_dump() for event in events if event.type in lazy.event.AGENT_TYPES],
            }
        )

    def raise_for_outcome(self) -> Self:
        """This result, unless its turn failed: then the error that `turn()` would have raised."""
        if self.ok:
            return self
        kind = BY_CODE.get(self.code or "", AgentFailed)
        raise kind(self.error or f"the turn {self.outcome}", body=dict(self.body))

    def text(self) -> str:
        """The answer: the words of the `text` events, joined. Nothing else is counted."""
        return "".join(self._contents(lazy.event.EventType.TEXT))

    def thinking(self) -> str:
        """What the agent thought aloud."""
        return "".join(self._contents(lazy.event.EventType.THINKING))

    def _contents(self, kind: EventType) -> list[str]:
        said = (event for event in self.events if isinstance(event, dict) and event.get("type") == kind)
        return [content for event in said if isinstance(content := event.get("content"), str)]


@dataclass(frozen=True, slots=True)
class RunResult:
    """What `POST /run` answers: `result` is the JSON value that the model wrote, parsed."""

    ok: bool
    result: Any
    duration_ms: int
    stop_reason: str | None = None
    body: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_response(cls, body: Mapping[str, Any]) -> Self:
        return cls(
            ok=bool(body.get("ok", True)),
            result=body.get("result"),
            duration_ms=_whole(body.get("duration_ms")),
            stop_reason=_text_or_none(body.get("stop_reason")),
            body=body,
        )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _whole(value: Any) -> int:
    return int(value) if isinstance(value, int | float) else 0
