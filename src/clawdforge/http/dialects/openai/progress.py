"""A turn's events as OpenAI's callers know answers: words, reasoning, and one reason why it ended.

What the agent does with its tools is told as reasoning, never as a call that the caller should make.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from clawdforge.wire.base import Json
from clawdforge.wire.event import EventType
from clawdforge.wire.turn import Outcome

Kind: TypeAlias = Literal["text", "reasoning"]
Piece: TypeAlias = tuple[Kind, str]
REASONS: Final = {"max_tokens": "length", "max_turn_requests": "length", "refusal": "content_filter"}
BAD: Final = frozenset({Outcome.FAILED, Outcome.TIMED_OUT, Outcome.INTERRUPTED})


@dataclass(frozen=True, slots=True)
class End:
    """How a turn ended. `error` and `code` where it did not come to its end by itself."""

    outcome: str
    stop_reason: str | None
    error: str
    code: str
    usage: Json

    @property
    def is_failure(self) -> bool:
        return self.outcome in BAD

    @property
    def finish_reason(self) -> str:
        """A turn that somebody stopped is cut short, and never reads as one that ended."""
        if self.outcome != Outcome.COMPLETED:
            return "length"
        return REASONS.get(self.stop_reason or "", "stop")


def end_of(event: Json) -> End:
    """The end, of `turn.ended` or of a row with the same names."""
    return End(
        str(event.get("outcome") or ""),
        event.get("stop_reason"),
        str(event.get("error") or f"the turn was {event.get('outcome')}"),
        str(event.get("code") or "agent_failed"),
        event.get("usage") or {},
    )


def piece_of(event: Json) -> Piece | None:
    """What an event of a turn adds to the answer, if anything."""
    kind = event["type"]
    if kind in (EventType.TEXT, EventType.THINKING):
        text = event.get("content")
        return ("text" if kind == EventType.TEXT else "reasoning", text) if text else None
    told = _tell(kind, event)
    return ("reasoning", f"\n[{told}]\n") if told else None


def _tell(kind: str, event: Json) -> str:
    update = event.get("update") or {}
    if kind == EventType.TOOL_CALL:
        return str(event.get("name") or update.get("title") or "a tool")
    if kind == EventType.TOOL_UPDATE and update.get("status") == "failed":
        return f"{update.get('title') or 'it'} failed"
    if kind == EventType.PERMISSION_REQUESTED:
        return f"asks for permission: {event.get('tool')}"
    if kind == EventType.PERMISSION_DECIDED:
        return f"{event.get('tool') or 'permission'}: {event.get('decision')}"
    if kind == EventType.TURN_RETRIED:
        return f"tries again: {event.get('error')}"
    return f"output was left out: {event.get('reason')}" if kind == EventType.OUTPUT_TRUNCATED else ""


def join(pieces: Iterable[Piece | None]) -> Iterator[Piece]:
    """Neighbours of one kind as one piece."""
    kind: Kind = "text"
    texts: list[str] = []
    for piece in pieces:
        if piece is None:
            continue
        if piece[0] != kind and texts:
            yield kind, "".join(texts)
            texts = []
        kind = piece[0]
        texts.append(piece[1])
    if texts:
        yield kind, "".join(texts)


def count_tokens(usage: Json) -> tuple[int, int, int]:
    """Tokens in, of these from a cache, and out. Ours are beside each other, OpenAI's within each other."""
    cached = int(usage.get("cached_tokens") or 0)
    return int(usage.get("input_tokens") or 0) + cached, cached, int(usage.get("output_tokens") or 0)
