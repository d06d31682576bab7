"""Makes one message from an agent's events: text, thinking, tool calls and plan. Limited in size."""

from typing import Any

from clawdforge.core.models.events import AgentEvent
from clawdforge.core.models.rows import MessageRow
from clawdforge.wire.base import Json, Micros
from clawdforge.wire.event import EventType
from clawdforge.wire.event_forms import update_of
from clawdforge.wire.json_bounds import is_larger
from clawdforge.wire.message import CALL_ID, CALL_KEYS, CALL_OUTPUT, Role, estimate_tokens

MAX_CHARS = 4 << 20
MAX_TOOL_CALLS = 2000
MAX_TOOL_CHARS = 16_384
SAID = frozenset({EventType.TEXT, EventType.THINKING})


class Projection:
    """Collects one turn. What is beyond the bounds stays in the log and is marked here."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._tools: dict[str, Json] = {}
        self._shown: set[str] = set()  # calls whose output is known only as it is shown to people
        self._plan: tuple[Any, ...] = ()
        self._chars = 0
        self._text_bytes = 0
        self._tool_bytes = 0
        self.truncated = False

    @property
    def size(self) -> int:
        """About how many bytes the message will have; too many where calls of tools were updated often."""
        return self._text_bytes + min(self._tool_bytes, len(self._tools) * len(CALL_KEYS) * MAX_TOOL_CHARS)

    def feed(self, event: AgentEvent, size: int = 0) -> None:
        """Take one event in; `size` is that of the whole event in the log."""
        if event.kind in SAID:
            self.feed_words(event.kind, event.fields.get("content"))
        elif event.kind in (EventType.TOOL_CALL, EventType.TOOL_UPDATE):
            self._tool_bytes += size
            self._merge_tool_call(update_of(event.kind, event.fields))
        elif event.kind is EventType.PLAN:
            entries = update_of(event.kind, event.fields).get("entries")
            self._plan = tuple(entries) if isinstance(entries, list) else self._plan

    def feed_words(self, kind: EventType, text: Any) -> None:
        """What was said, in one event or in several."""
        if kind not in SAID or not isinstance(text, str) or not text:
            return
        target = self._text if kind is EventType.TEXT else self._thinking
        room = MAX_CHARS - self._chars
        if len(text) > room:
            self.truncated = True
            text = text[:room]
        if text:
            target.append(text)
            self._chars += len(text)
            self._text_bytes += len(text) if text.isascii() else len(text.encode("utf-8", "replace"))

    def _merge_tool_call(self, update: Json) -> None:
        call_id = str(update.get(CALL_ID))
        if call_id not in self._tools and len(self._tools) >= MAX_TOOL_CALLS:
            self.truncated = True
            return
        kept = {key: shorten(update[key]) for key in CALL_KEYS if update.get(key) is not None}
        output = read_output(update.get("content")) if CALL_OUTPUT not in kept else ""
        before = self._tools.get(call_id, {})
        if output and (CALL_OUTPUT not in before or call_id in self._shown):
            kept[CALL_OUTPUT] = output
            self._shown.add(call_id)
        self._tools[call_id] = {**before, **kept}

    def make_message(self, session_id: str, turn_index: int, at: Micros) -> MessageRow | None:
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


def read_output(content: Any) -> str:
    """What a tool gave, from the blocks that agents show to people: texts, and which files were changed."""
    parts: list[str] = []
    room = MAX_TOOL_CHARS
    for block in content if isinstance(content, list) else ():
        inner = block.get("content") if isinstance(block, dict) else None
        text = inner.get("text") if isinstance(inner, dict) else None
        if isinstance(block, dict) and block.get("type") == "diff":
            text = f"changed {block.get('path')}"
        if isinstance(text, str) and text and room > 0:
            parts.append(text[:room])
            room -= len(text)
    return "\n".join(parts)[:MAX_TOOL_CHARS]


def shorten(value: Any) -> Any:
    """A tool's input or output as the transcript keeps it; the log has the whole."""
    if isinstance(value, str):
        return value[:MAX_TOOL_CHARS]
    if is_larger(value, MAX_TOOL_CHARS) or len(repr(value)) > MAX_TOOL_CHARS:
        return {"truncated": True}
    return value
