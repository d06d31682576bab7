"""How a turn's end is answered: by the agent's stop reason, or by an error when it was cut short."""

from typing import Any, Final

from clawdforge.jsonrpc.rpc import INTERNAL_ERROR, RpcError
from clawdforge.wire.base import Json
from clawdforge.wire.event import Event
from clawdforge.wire.turn import Outcome

STOP_REASONS: Final = frozenset({"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"})
NEXT: Final[dict[str, str]] = {
    Outcome.INTERRUPTED: "the server stopped in the middle of it; send the prompt again",
    Outcome.TIMED_OUT: "it took too long",
    Outcome.FAILED: "the agent failed",
}


def answer_of(ended: Event) -> Json:
    """The answer to `session/prompt`. Only a turn that the agent completed reads as one that ended."""
    fields: Json = ended.model_extra or {}
    outcome, stopped_by = fields.get("outcome"), fields.get("stopped_by")
    if stopped_by is not None:
        raise _failure(fields, f"the turn was stopped by its limit {stopped_by}; what it said is kept")
    answer: Json = {"stopReason": "cancelled"}
    if outcome == Outcome.COMPLETED:
        reason = fields.get("stop_reason")
        answer["stopReason"] = reason if reason in STOP_REASONS else "end_turn"
    elif outcome != Outcome.CANCELLED:
        spare = NEXT.get(str(outcome), "it did not come to its end")
        raise _failure(fields, str(fields.get("error") or f"the turn {outcome}: {spare}"))
    usage = _usage(fields.get("usage"))
    if usage is not None:
        answer["usage"] = usage
    return answer


def _failure(fields: Json, text: str) -> RpcError:
    data = {key: fields[key] for key in ("outcome", "code", "stopped_by", "retry_after") if fields.get(key)}
    return RpcError(INTERNAL_ERROR, text, data)


def _usage(found: Any) -> Json | None:
    """Only what the agent reported: an estimate of ours would read like its count."""
    if not isinstance(found, dict) or found.get("estimated"):
        return None
    names = (
        ("inputTokens", "input_tokens"),
        ("outputTokens", "output_tokens"),
        ("cachedReadTokens", "cached_tokens"),
        ("totalTokens", "total_tokens"),
    )
    return {name: found.get(key) or 0 for name, key in names}
