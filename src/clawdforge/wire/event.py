"""The event: immutable, numbered per session from 1 without gaps, the only truth about a session.

An event is encoded once, as one line of JSON, and the same bytes are stored, paged and streamed. What an
agent sent is stored in the compact form; `event_forms` makes the nested one for the callers that read it.
"""

from collections.abc import Iterable, Mapping, Sequence
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
    TURN_CHANGED = "turn.changed"
    TURN_STARTED = "turn.started"
    TURN_RETRIED = "turn.retried"
    TURN_ENDED = "turn.ended"
    PERMISSION_REQUESTED = "permission.requested"
    PERMISSION_DECIDED = "permission.decided"
    HISTORY_CUT = "history.cut"
    HISTORY_RESTORED = "history.restored"
    HISTORY_CLEARED = "history.cleared"
    HISTORY_COMPACTED = "history.compacted"
    CONTEXT_STARTED = "context.started"
    MESSAGE_POSTED = "message.posted"
    MESSAGE_BROUGHT = "message.brought"
    TURN_BROUGHT = "turn.brought"
    OUTPUT_TRUNCATED = "output.truncated"
    BUDGET_WARNED = "budget.warned"


AGENT_TYPES: Final = frozenset(kind for kind in EventType if "." not in kind.value)
"""Types that stand for one message of the agent; `/turn` answers with these only."""

LISTED: Final = frozenset(
    {
        *(EventType.SESSION_CREATED, EventType.SESSION_CHANGED, EventType.SESSION_CLOSED),
        *(EventType.SESSION_REOPENED, EventType.TURN_QUEUED, EventType.TURN_STARTED, EventType.TURN_ENDED),
        *(EventType.HISTORY_CUT, EventType.HISTORY_RESTORED, EventType.HISTORY_CLEARED),
        *(EventType.HISTORY_COMPACTED, EventType.MESSAGE_POSTED),
    }
)
"""Types that tell of something that a list of sessions shows. A request for a permission has its own row."""

RESERVED: Final = frozenset({"seq", "ts", "turn", "type"})
"""Keys that only the server sets, whatever an agent puts at the top of its message."""

CONTENT: Final = b'"content":'


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


def encode_body(kind: str, turn: int | None, at: Micros, fields: Mapping[str, Any]) -> bytes:
    """Everything of an event but its number: a JSON object that still lacks `{"seq":n,` in front."""
    if not RESERVED.isdisjoint(fields):
        fields = {key: value for key, value in fields.items() if key not in RESERVED}
    return orjson.dumps({"ts": to_iso(at), "turn": turn, "type": kind, **fields})[1:]


def encode_bodies(kind: str, turn: int | None, at: Micros, fields: Json, texts: Iterable[str]) -> list[bytes]:
    """The same of events that differ in nothing but their words, which come last."""
    alike = encode_body(kind, turn, at, {**fields, "content": ""})[: -len(b'""}')]
    return [b"%b%b}" % (alike, orjson.dumps(text)) for text in texts]


def number(seq: int, body: bytes) -> bytes:
    """The whole event, once its number is known."""
    return b'{"seq":%d,%b' % (seq, body)


def join_words(events: Sequence[bytes]) -> str | None:
    """The words of text or thinking events, one after another; None when one is not written as we write them.

    `content` is the last key of such an event, and its name cannot stand in a text with these quotes. So
    everything before it need not be decoded, which takes half the time.
    """
    words = [event[event.rfind(CONTENT) + len(CONTENT) : -1] for event in events]
    try:
        found = orjson.loads(b"[" + b",".join(words) + b"]")
        return "".join(found) if len(found) == len(events) else None
    except (orjson.JSONDecodeError, TypeError):
        return None
