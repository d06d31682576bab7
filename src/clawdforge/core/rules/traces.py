"""Which trace a turn belongs to, and which tools it used, from its row and its events.

The ids are computed and not kept: whoever asks finds the same ones, also after a crash, so the span that an
agent or a receiver was told of is the one that is closed at the end of the turn. All that is kept is what the
caller's `traceparent` said (https://www.w3.org/TR/trace-context/).
"""

import hashlib
import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import orjson

from clawdforge.core.models.events import StoredEvent
from clawdforge.core.models.principal import Principal
from clawdforge.core.models.rows import TurnRow
from clawdforge.core.models.traces import Place, ToolTrace
from clawdforge.core.ports import View
from clawdforge.core.rules.projection import read_output, shorten
from clawdforge.wire.base import Json, Micros, from_iso
from clawdforge.wire.event import EventType
from clawdforge.wire.event_forms import update_of
from clawdforge.wire.message import CALL_ID, CALL_INPUT, CALL_OUTPUT

TRACEPARENT: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[!-~]{0,200})?")
NO_TRACE: Final = "0" * 32
NO_SPAN: Final = "0" * 16
FIRST_VERSION: Final = "00"
NO_VERSION: Final = "ff"
TRACE_DIGITS: Final = slice(3, 35)
SPAN_DIGITS: Final = slice(36, 52)
"""Where they stand in what is kept."""

MOST_TOOLS: Final = 1000
MOST_CHARS: Final = 1 << 20
"""So much of what went into tools and came out is told of one turn; of what comes after that, nothing."""

MAX_ID_CHARS: Final = 200
MAX_WORD_CHARS: Final = 1000
KINDS: Final = frozenset(
    {"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode"}
)
"""What agents say that a call does. It names the call: its title may be a whole command."""

PLAIN_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]{0,63}")
UNNAMED: Final = "other"
ENDS: Final = frozenset({"completed", "failed"})
WORDS: Final = ("kind", "status", "title")
CONTENT: Final = ("given", "got")
CALLS: Final = frozenset({EventType.TOOL_CALL.value, EventType.TOOL_UPDATE.value})


def read_traceparent(text: str | None) -> str | None:
    """What is kept of a caller's header; None for one that is not as the standard wants it.

    A later version may have more behind what the first one has; nothing of that is kept.
    """
    found = TRACEPARENT.fullmatch(text or "")
    if found is None:
        return None
    version, trace_id, span_id, _, more = found.groups()
    if version == NO_VERSION or trace_id == NO_TRACE or span_id == NO_SPAN:
        return None
    if more and version == FIRST_VERSION:
        return None
    return write_traceparent(Place(trace_id, span_id))


def write_traceparent(place: Place) -> str:
    """The header that makes this span the parent of what somebody else does. Every turn is recorded."""
    return f"{FIRST_VERSION}-{place.trace_id}-{place.span_id}-01"


def find_place(turn: TurnRow) -> Place:
    """Where a turn's own span stands: below its caller's, or at the top of a trace of its own."""
    name = f"{turn.session_id}/{turn.turn_index}"
    kept = turn.traceparent
    if kept is None:
        return Place(_digits("trace", name, 32), _digits("turn", name, 16))
    return Place(kept[TRACE_DIGITS], _digits("turn", name, 16), kept[SPAN_DIGITS])


def find_tool_place(turn: TurnRow, number: int) -> Place:
    """Where the span of a call of a tool stands, by its number in the turn."""
    above = find_place(turn)
    name = f"{turn.session_id}/{turn.turn_index}/{number}"
    return Place(above.trace_id, _digits("tool", name, 16), above.span_id)


def find_traceparent(turn: TurnRow) -> str:
    """What others are told, so that what they do stands below this turn."""
    return write_traceparent(find_place(turn))


def find_callers_trace(view: View, by: Principal | None) -> str | None:
    """What is kept of a caller's trace. What an agent asks for stands below its own turn, unless it says."""
    if by is None or by.session_id is None or by.traceparent is not None:
        return None if by is None else by.traceparent
    turn = view.active_turn(by.session_id)
    return None if turn is None else find_traceparent(turn)


class Said(NamedTuple):
    """What one event says of a call of a tool."""

    at: Micros
    call_id: str
    words: dict[str, str]


def read_calls(events: Iterable[StoredEvent], *, with_content: bool) -> list[Said]:
    """What events say of calls of tools, cut short; others are not even decoded."""
    return [_read_call(event, with_content=with_content) for event in events if event.type in CALLS]


def _read_call(event: StoredEvent, *, with_content: bool) -> Said:
    fields = event.decode()
    update = update_of(event.type, fields)
    words = {key: word[:MAX_WORD_CHARS] for key in WORDS if isinstance(word := update.get(key), str)}
    if with_content:
        given, got = update.get(CALL_INPUT), update.get(CALL_OUTPUT) or read_output(update.get("content"))
        words |= {key: _write(value) for key, value in zip(CONTENT, (given, got), strict=True) if value}
    return Said(from_iso(fields["ts"]), str(update.get(CALL_ID))[:MAX_ID_CHARS], words)


def _write(value: Any) -> str:
    """As text, of which it is known how much memory it takes."""
    short = shorten(value)
    return short if isinstance(short, str) else orjson.dumps(short, default=str).decode()


class ToolCalls:
    """Collects the calls of one turn, in order, up to a limit."""

    def __init__(self, *, with_content: bool) -> None:
        self._with_content = with_content
        self._calls: dict[str, Json] = {}
        self._chars = 0  # of content
        self.is_whole = True

    def take(self, said: Said) -> None:
        if said.call_id not in self._calls and len(self._calls) >= MOST_TOOLS:
            self.is_whole = False
            return
        call = self._calls.setdefault(said.call_id, {"started_at": said.at})
        for key, word in said.words.items():
            if key not in CONTENT or self._has_room(len(word) - len(call.get(key, ""))):
                call[key] = word
        if call.get("status") in ENDS:
            call.setdefault("ended_at", said.at)

    def _has_room(self, more: int) -> bool:
        if self._chars + more > MOST_CHARS:
            return False
        self._chars += more
        return True

    def list(self) -> tuple[ToolTrace, ...]:
        return tuple(self._make(number, *one) for number, one in enumerate(self._calls.items(), 1))

    def _make(self, number: int, call_id: str, call: Json) -> ToolTrace:
        kind, title = call.get("kind"), call.get("title", "")
        content: dict[str, Any] = {}
        if self._with_content:
            content = {"title": title, "given": call.get("given"), "got": call.get("got")}
        return ToolTrace(
            number=number,
            call_id=call_id,
            name=name_tool(kind, title),
            kind=kind if kind in KINDS else None,
            status=call.get("status") if call.get("status") in ENDS else None,
            started_at=call["started_at"],
            ended_at=call.get("ended_at"),
            **content,
        )


def name_tool(kind: str | None, title: str) -> str:
    """A name that tells nothing of what was said: what the call does, or the plain name of a tool."""
    if kind in KINDS:
        return str(kind)
    return title if PLAIN_NAME.fullmatch(title) else UNNAMED


def _digits(what: str, name: str, count: int) -> str:
    return hashlib.sha256(f"clawdforge {what} {name}".encode()).hexdigest()[:count]
