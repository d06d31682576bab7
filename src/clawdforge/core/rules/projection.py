"""What an agent's events say, as one message: text, thinking, tool calls and plan. Bounded in size."""

from typing import Any

from clawdforge.core.model import MessageRow
from clawdforge.wire.base import Json, Micros
from clawdforge.wire.event import EventType
from clawdforge.wire.message import Role, estimate_tokens

MAX_CHARS = 4 << 20
MAX_TOOL_CALLS = 2000
TOOL_KEYS = ("toolCallId", "title", "kind", "status", "rawInput", "rawOutput", "locations")
MAX_TOOL_CHARS = 16_384


class Projection:
    """Collects one turn. What is beyond the bounds stays in the log and is marked here."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._tools: dict[str, Json] = {}
        self._plan: tuple[Any, ...] = ()
        self._chars = 0
        self.truncated = False

    def feed(self, kind: EventType, fields: Json) -> None:
        if kind is EventType.TEXT:
            self._add(self._text, fields)
        elif kind is EventType.THINKING:
            self._add(self._thinking, fields)
        elif kind in (EventType.TOOL_CALL, EventType.TOOL_UPDATE):
            self._tool(fields)
        elif kind is EventType.PLAN:
            entries = _update(fields).get("entries")
            self._plan = tuple(entries) if isinstance(entries, list) else self._plan

    def _add(self, target: list[str], fields: Json) -> None:
        text = fields.get("content")
        if not isinstance(text, str) or not text:
            return
        room = MAX_CHARS - self._chars
        if len(text) > room:
            self.truncated = True
            text = text[:room]
        if text:
            target.append(text)
            self._chars += len(text)

    def _tool(self, fields: Json) -> None:
        update = _update(fields)
        call_id = str(update.get("toolCallId"))
        if call_id not in self._tools and len(self._tools) >= MAX_TOOL_CALLS:
            self.truncated = True
            return
        kept = {key: short(update[key]) for key in TOOL_KEYS if update.get(key) is not None}
        self._tools[call_id] = {**self._tools.get(call_id, {}), **kept}

    def message(self, session_id: str, turn_index: int, at: Micros) -> MessageRow | None:
        """The assistant's message, or None when the agent said and did nothing."""
        text, thinking = "".join(self._text), "".join(self._thinking)
        if not (text or thinking or self._tools or self._plan):
            return None
        return MessageRow(
            session_id=session_id,
            role=Role.ASSISTANT,
            content=text,
            ts=at,
            turn=turn_index,
            thinking=thinking,
            tool_calls=tuple(self._tools.values()),
            plan=self._plan,
            token_count=estimate_tokens(text) + estimate_tokens(thinking),
            truncated=self.truncated,
        )


def _update(fields: Json) -> Json:
    params = fields.get("params")
    return params if isinstance(params, dict) else {}


def short(value: Any) -> Any:
    """A tool's input or output as the transcript keeps it; the log has the whole."""
    if isinstance(value, str):
        return value[:MAX_TOOL_CHARS]
    return value if len(repr(value)) <= MAX_TOOL_CHARS else {"truncated": True}
