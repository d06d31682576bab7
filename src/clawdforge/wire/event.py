"""The event: immutable, numbered per session from 1 without gaps, the only truth about a session.

An event is encoded once, as one line of JSON, and the same bytes are stored, paged and streamed.
What the agent sent keeps its JSON-RPC keys (`jsonrpc`, `method`, `params`) beside our own.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final

import orjson

from clawdforge.wire.base import Json, Micros, Reply, to_iso


class EventType(StrEnum):
    """Every type an event can have. What an agent sends first, then what is said by the server."""

    TEXT = "text"
    THINKING = "thinking"
    USER = "user"
    TOOL_CALL = "tool_call"
    TOOL_UPDATE = "tool_update"
    PLAN = "plan"
    MODE = "mode"
    COMMANDS = "commands"
    CONFIG = "config"
    INFO = "info"
    USAGE = "usage"
    NOTICE = "notice"
    COMPACTION = "compaction"
    RESPONSE = "response"
    OTHER = "other"

    SESSION_CREATED = "session.created"
    SESSION_CHANGED = "session.changed"
    SESSION_CLOSED = "session.closed"
    SESSION_REOPENED = "session.reopened"
    TURN_QUEUED = "turn.queued"
    TURN_STARTED = "turn.started"
    TURN_ENDED = "turn.ended"
    PERMISSION_REQUESTED = "permission.requested"
    PERMISSION_DECIDED = "permission.decided"
    HISTORY_CUT = "history.cut"
    HISTORY_RESTORED = "history.restored"
    HISTORY_CLEARED = "history.cleared"
    HISTORY_COMPACTED = "history.compacted"
    CONTEXT_STARTED = "context.started"
    MESSAGE_POSTED = "message.posted"
    OUTPUT_TRUNCATED = "output.truncated"


AGENT_TYPES: Final = frozenset(kind for kind in EventType if "." not in kind.value)
"""Types that stand for one message of the agent; `/turn` answers with these only."""

RESERVED: Final = frozenset({"seq", "ts", "turn", "type"})
CONTENT: Final = b'"content":'
"""Keys that only the server sets, whatever an agent puts at the top of its message."""

UPDATE_TYPES: Final[dict[str, EventType]] = {
    "agent_message_chunk": EventType.TEXT,
    "agent_thought_chunk": EventType.THINKING,
    "user_message_chunk": EventType.USER,
    "tool_call": EventType.TOOL_CALL,
    "tool_call_update": EventType.TOOL_UPDATE,
    "plan": EventType.PLAN,
    "plan_update": EventType.PLAN,
    "plan_removed": EventType.PLAN,
    "current_mode_update": EventType.MODE,
    "available_commands_update": EventType.COMMANDS,
    "config_option_update": EventType.CONFIG,
    "session_info_update": EventType.INFO,
    "usage_update": EventType.USAGE,
    "notice": EventType.NOTICE,
    "compaction_update": EventType.COMPACTION,
    "compaction_summary_chunk": EventType.COMPACTION,
}
"""An ACP `sessionUpdate` word and the type it becomes; any other word is `other`."""


class Event(Reply):
    """One event as a reader gets it. Keys that belong to its type are kept beside these."""

    seq: int
    ts: str
    turn: int | None = None
    type: str
    content: Any = None

    @property
    def text(self) -> str:
        """The streamed words of a `text` or `thinking` event, else nothing."""
        return self.content if isinstance(self.content, str) else ""


class EventPage(Reply):
    """`GET /sessions/{id}/events` as JSON; `next` is the cursor for the page after this one."""

    ok: bool = True
    events: list[Event]
    next: int


def encode_body(kind: str, turn: int | None, at: Micros, fields: Json) -> bytes:
    """Everything of an event but its number: a JSON object that still lacks `{"seq":n,` in front."""
    head = {"ts": to_iso(at), "turn": turn, "type": kind}
    return orjson.dumps({**head, **{k: v for k, v in fields.items() if k not in RESERVED}})[1:]


def number(seq: int, body: bytes) -> bytes:
    """The whole event, once its number is known."""
    return b'{"seq":%d,%b' % (seq, body)


def joined(events: Sequence[bytes]) -> str | None:
    """The streamed words of text or thinking events, read off their ends; None when one has to be decoded.

    `content` is the last key of such an event, and no text can hold its name with these quotes.
    """
    ends = [event[event.rfind(CONTENT) + len(CONTENT) : -1] for event in events]
    try:
        words = orjson.loads(b"[" + b",".join(ends) + b"]")
        return "".join(words) if len(words) == len(events) else None
    except (orjson.JSONDecodeError, TypeError):
        return None


def flatten(message: Json) -> tuple[EventType, Json]:
    """Type and fields of an agent's JSON-RPC message: as received, the update's keys copied flat.

    Callers of one kind read `params.update.content.text`, of another `params.content.text`, of a third
    `type` and `content` at the top. All three are served; only the top level is meant for summing up.
    """
    if "method" not in message:
        return EventType.RESPONSE, message
    params = message.get("params")
    update = params.get("update") if isinstance(params, dict) else None
    if not isinstance(params, dict) or not isinstance(update, dict):
        return EventType.OTHER, message
    kind = UPDATE_TYPES.get(str(update.get("sessionUpdate")), EventType.OTHER)
    fields = {**message, "params": {**update, **params}}
    if kind in (EventType.TEXT, EventType.THINKING, EventType.USER):
        fields["content"] = _text(update.get("content"))
    elif kind is EventType.TOOL_CALL:
        name = update.get("title") or update.get("kind") or update.get("toolCallId")
        fields |= {"name": str(name or "tool"), "args": update.get("rawInput") or {}}
    return kind, fields


def _text(content: Any) -> str:
    if isinstance(content, dict) and isinstance(content.get("text"), str):
        return str(content["text"])
    return ""
