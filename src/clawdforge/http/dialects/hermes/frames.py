"""Events of a turn as frames of a hermes stream: pure functions, every frame with an id to resume after.

An id is `<stream>:<seq>`. An event that makes two frames gives the first of them `<stream>:<seq>.1`, so
that a reader who was cut off between the two gets the second.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import orjson

from clawdforge.core.models.rows import PermissionRow
from clawdforge.http.dialects.hermes.shapes import snapshot, stream_id
from clawdforge.wire.base import Json
from clawdforge.wire.error_codes import ErrorCode
from clawdforge.wire.event import EventType
from clawdforge.wire.event_forms import update_of
from clawdforge.wire.message import CALL_ID, CALL_INPUT
from clawdforge.wire.sse import encode
from clawdforge.wire.turn import Outcome

Part: TypeAlias = tuple[str, Json]
KINDS: Final = {ErrorCode.AGENT_AUTH_REQUIRED.value: "auth_mismatch"}
OVER: Final = frozenset({"completed", "failed"})


@dataclass(frozen=True, slots=True)
class Cursor:
    """A position in a stream: after `parts` frames of the event `seq`, or after all of them."""

    seq: int
    parts: int | None = None

    @property
    def after(self) -> int:
        """The last event that need not be read again."""
        return self.seq if self.parts is None else self.seq - 1


def parse_cursor(text: str | None, stream: str) -> Cursor | None:
    """The position that an id or a number names; None when it does not belong to this stream."""
    position = (text or "").removeprefix(f"{stream}:")
    seq, dot, part = position.partition(".")
    numbers = [seq, part] if dot else [seq]
    if not all(one.isascii() and one.isdecimal() and len(one) < 16 for one in numbers):
        return None
    return Cursor(int(seq), int(part) if dot else None)


def choose_later(one: Cursor | None, other: Cursor | None) -> Cursor | None:
    """An EventSource that reconnects repeats its old address and adds its position: the later one counts."""
    both = [position for position in (one, other) if position is not None]
    return max(both, key=lambda position: (position.after, position.parts or 0), default=None)


def encode_parts(stream: str, seq: int, parts: list[Part], since: Cursor | None) -> bytes:
    """The frames of one event, from a position on."""
    first = 0
    if since is not None and since.seq == seq:
        first = len(parts) if since.parts is None else since.parts
    last = len(parts) - 1
    return b"".join(
        encode(
            orjson.dumps(data), event=name, id=f"{stream}:{seq}" + ("" if index == last else f".{index + 1}")
        )
        for index, (name, data) in enumerate(parts)
        if index >= first
    )


def parts_of(event: Json, session_id: str, names: Mapping[str, str]) -> list[Part]:
    """The frames that an event of a turn becomes, if any. The end of a turn is not among them.

    `names` are those of tool calls by their id: the update that ends a call may leave its name out.
    """
    kind = event["type"]
    if kind in (EventType.TEXT, EventType.THINKING):
        name = "token" if kind == EventType.TEXT else "reasoning"
        return [(name, {"text": event["content"]})] if event.get("content") else []
    if kind == EventType.TOOL_CALL:
        update = _update_with_name(event, names)
        begun = _tool("tool.started", update)
        return [("tool", begun), *([("tool_complete", _tool_end(update))] if _is_over(update) else [])]
    if kind == EventType.TOOL_UPDATE:
        update = _update_with_name(event, names)
        return [("tool_complete", _tool_end(update))] if _is_over(update) else []
    if kind == EventType.PERMISSION_REQUESTED:
        asked = {name: event.get(name) for name in ("permission_id", "tool", "kind", "options")}
        return [("approval", approval(session_id, event.get("turn"), **asked))]
    if kind == EventType.OUTPUT_TRUNCATED:
        return [("warning", {"type": "truncated", "message": f"output was left out: {event.get('reason')}"})]
    return []


def parts_of_end(event: Json, session: Json) -> list[Part]:
    """The frames that close a stream. What was said until then has been sent already."""
    session_id, outcome, code = session["session_id"], event.get("outcome"), event.get("code")
    if outcome == Outcome.COMPLETED:
        usage = {name: session[name] for name in ("input_tokens", "output_tokens", "estimated_cost")}
        return [("done", {"session": session, "usage": usage}), ("stream_end", {"session_id": session_id})]
    if outcome == Outcome.CANCELLED:
        return [("cancel", {"message": event.get("error") or "Cancelled by user", "session_id": session_id})]
    said: Json = {"message": event.get("error") or "the turn failed", "code": code, "session_id": session_id}
    if outcome == Outcome.INTERRUPTED:
        return [("apperror", {**said, "type": "interrupted", "recovery_control": True})]
    return [("apperror", {**said, "type": KINDS.get(str(code), "error")})]


def approval_row(row: PermissionRow) -> Json:
    asked = {"permission_id": row.permission_id, "tool": row.tool, "kind": row.kind}
    return approval(row.session_id, row.turn_index, **asked, options=list(row.options))


def approval(session_id: str, turn: Any, *, permission_id: Any, tool: Any, kind: Any, options: Any) -> Json:
    """A request of the agent. `command` is what it wants to do, in its own words."""
    return {
        "approval_id": permission_id,
        "session_id": session_id,
        "stream_id": stream_id(session_id, turn),
        "command": tool,
        "description": f"the agent asks for permission: {kind or 'tool'}",
        "pattern_key": kind or "tool",
        "pattern_keys": [kind or "tool"],
        "options": options,
    }


def tool_id(event: Json) -> str:
    """Which tool call an event is about."""
    return str(update_of(event["type"], event).get(CALL_ID))


def _update_with_name(event: Json, names: Mapping[str, str]) -> Json:
    """The agent's update, with the name of its tool call where that was told before."""
    return {"title": names.get(tool_id(event)), **update_of(event["type"], event)}


def _is_over(update: Json) -> bool:
    return str(update.get("status")) in OVER


def _tool(event_type: str, update: Json) -> Json:
    name = str(update.get("title") or update.get("kind") or update.get(CALL_ID) or "tool")
    return {
        "event_type": event_type,
        "name": name,
        "preview": name,
        "args": snapshot(update.get(CALL_INPUT)),
        "tid": update.get(CALL_ID),
    }


def _tool_end(update: Json) -> Json:
    return {
        **_tool("tool.completed", update),
        "duration": None,
        "is_error": update.get("status") == "failed",
    }
