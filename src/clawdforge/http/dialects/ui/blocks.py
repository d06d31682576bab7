"""What both maps of a turn's events share: blocks of words or of thoughts, and calls of tools, told apart."""

from typing import Final, Literal, TypeAlias

from clawdforge.wire.base import Json
from clawdforge.wire.event import EventType
from clawdforge.wire.message import CALL_ID, CALL_INPUT, CALL_OUTPUT
from clawdforge.wire.turn import Outcome

Kind: TypeAlias = Literal["text", "reasoning"]
OVER: Final = frozenset({"completed", "failed"})
KINDS: Final[dict[str, Kind]] = {EventType.TEXT: "text", EventType.THINKING: "reasoning"}
NEWS: Final = frozenset({EventType.TOOL_CALL, EventType.TOOL_UPDATE})


class Blocks:
    """The state of a map: which block is open, and which calls have been told of."""

    def __init__(self) -> None:
        self.kind: Kind | None = None
        self.number = 0
        self.open_calls: dict[str, str] = {}

    def enter(self, kind: Kind | None) -> tuple[tuple[Kind, int] | None, tuple[Kind, int] | None]:
        """The block that ends with this, and the one that begins."""
        if kind == self.kind:
            return None, None
        ended = None if self.kind is None else (self.kind, self.number)
        self.kind = kind
        if kind is None:
            return ended, None
        self.number += 1
        return ended, (kind, self.number)


def find_call(event: Json) -> tuple[str, Json] | None:
    """The id of a tool call that an event tells of, and what it says."""
    if event["type"] not in NEWS:
        return None
    update = event.get("update") or {}
    call_id = update.get(CALL_ID)
    return (call_id, update) if isinstance(call_id, str) and call_id else None


def name_of(event: Json, update: Json) -> str:
    return str(event.get("name") or update.get("title") or update.get("kind") or "tool")


def input_of(update: Json) -> Json:
    found = update.get(CALL_INPUT)
    return found if isinstance(found, dict) else {}


def output_of(update: Json) -> str:
    """What came of a call, as text."""
    found = update.get(CALL_OUTPUT)
    if isinstance(found, str):
        return found
    parts = update.get("content")
    texts = [_text_of(part) for part in parts] if isinstance(parts, list) else []
    return "\n".join(text for text in texts if text)


def _text_of(part: object) -> str:
    inner = part.get("content") if isinstance(part, dict) else None
    text = inner.get("text") if isinstance(inner, dict) else None
    return text if isinstance(text, str) else ""


def failure_of(event: Json) -> tuple[str, str] | None:
    """Words and code of a turn that did not end well."""
    if event.get("outcome") in (Outcome.COMPLETED, Outcome.CANCELLED):
        return None
    return str(event.get("error") or f"the turn {event.get('outcome')}"), str(event.get("code") or "")
