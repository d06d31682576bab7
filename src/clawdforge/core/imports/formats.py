"""Transcripts of others as messages of ours: pure readers, one for each format.

`messages` is a list that a program made, so a row that is wrong is refused by its number. Files of other
tools (`claude`, `codex`) are read as they are found: lines that say nothing to us are passed over.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from pydantic import ValidationError

from clawdforge.core.imports import tool_calls
from clawdforge.core.imports.transcripts import Line, Transcript, claude, codex
from clawdforge.core.model import MessageRow, TurnRow
from clawdforge.core.rules.memory import IMPORTED_TURN
from clawdforge.wire.base import Json, Micros, from_iso
from clawdforge.wire.errors import InvalidRequest
from clawdforge.wire.message import Message, Role, estimate_tokens
from clawdforge.wire.session import Export, ExportedTurn, ImportRequest, OnInterrupt, PermissionMode
from clawdforge.wire.turn import TurnState

ROLES: Final[Mapping[str, Role]] = {
    **{role.value: role for role in Role},
    "human": Role.USER,
    "ai": Role.ASSISTANT,
    "model": Role.ASSISTANT,
    "developer": Role.SYSTEM,
    "function": Role.TOOL,
}
KEPT: Final = ("persona", "pinned", "permission_mode", "on_interrupt", "plan_mode")
MAX_TURNS: Final = 1 << 31


@dataclass(frozen=True, slots=True)
class Imported:
    """What was found. `seq` 0 and `ts` 0 are for the session to fill in."""

    messages: tuple[MessageRow, ...]
    title: str = ""
    turns: tuple[TurnRow, ...] = ()
    settings: Json = field(default_factory=dict)
    skipped: int = 0


def read(request: ImportRequest) -> Imported:
    """InvalidRequest says what is wrong with it."""
    if request.format == "clawdforge":
        return _export(request)
    if request.format == "messages":
        if request.messages is None:
            raise InvalidRequest('give the transcript as a list in "messages"')
        rows = [_row(number, row) for number, row in enumerate(request.messages)]
        return Imported(tool_calls.joined(rows, map(_failed, request.messages)))
    return _file(request, claude if request.format == "claude" else codex)


def _file(request: ImportRequest, reader: Callable[[list[Json]], Transcript]) -> Imported:
    if request.text is None:
        raise InvalidRequest(f'give the {request.format} session file as "text"')
    lines, junk = [], 0
    for line in request.text.splitlines():
        if not line.strip():
            continue
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            value = None
        if isinstance(value, dict):
            lines.append(value)
        else:
            junk += 1
    found = reader(lines)
    if not found.lines:
        raise InvalidRequest(f"there is no message in this text; is it a {request.format} session file?")
    settings = {"model": found.model} if found.model else {}
    return Imported(tuple(map(_said, found.lines)), found.title, (), settings, junk + found.skipped)


def _said(line: Line) -> MessageRow:
    text = line.text
    return MessageRow(
        session_id="",
        role=line.role,
        content=text,
        ts=moment(line.at),
        turn=IMPORTED_TURN,
        thinking=line.thinking,
        tool_calls=tuple(line.tools.values()),
        token_count=estimate_tokens(text) + estimate_tokens(line.thinking),
        is_summary=line.is_summary,
    )


def _row(number: int, row: Json) -> MessageRow:
    role = ROLES.get(str(row.get("role")).lower())
    if role is None:
        raise InvalidRequest(f"message {number} has no role that is known: {', '.join(sorted(ROLES))}")
    text = content_text(row.get("content"))
    if text is None:
        raise InvalidRequest(f"the content of message {number} is neither text nor a list of text blocks")
    thinking = row.get("thinking") or row.get("reasoning") or row.get("reasoning_content")
    thinking = thinking if isinstance(thinking, str) else ""
    return MessageRow(
        session_id="",
        role=role,
        content=text,
        ts=moment(row.get("ts") or row.get("timestamp")),
        turn=IMPORTED_TURN,
        thinking=thinking,
        tool_calls=tool_calls.calls(row, role),
        token_count=estimate_tokens(text) + estimate_tokens(thinking),
        is_summary=row.get("is_summary") is True,
    )


def _failed(row: Json) -> bool:
    """Whether the row of a tool says that it went wrong."""
    return row.get("is_error") is True or row.get("status") == "error"


def content_text(content: Any) -> str | None:
    """Text, or the text of a list of blocks; nothing at all is an empty text."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        return None
    parts = [part.get("text") if isinstance(part, dict) else part for part in content]
    return "\n".join(part for part in parts if isinstance(part, str))


def moment(value: Any) -> Micros:
    """A time in ISO text or in seconds; 0 where there is none."""
    try:
        if isinstance(value, str) and value:
            return max(0, from_iso(value))
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e11:
            return int(value * 1_000_000)
    except (ValueError, OverflowError):
        return 0
    return 0


def _export(request: ImportRequest) -> Imported:
    """One of our own, given as an object, or as the text of its file."""
    try:
        whole = request.export if request.export is not None else orjson.loads(request.text or "")
        found = Export.model_validate(whole)
        turns = tuple(_turn(turn) for turn in found.turns)
        settings = _settings(found.session)
    except orjson.JSONDecodeError:
        raise InvalidRequest('give an export of this server in "export", or its JSON in "text"') from None
    except (ValidationError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InvalidRequest(f"this is not an export of this server: {str(error)[:500]}") from None
    if found.version != 1:
        raise InvalidRequest(f"this export has version {found.version}; this server reads version 1")
    known = {turn.turn_index for turn in turns}
    if len(known) < len(turns):
        raise InvalidRequest("this export names a turn twice")
    messages = tuple(_message(message, known) for message in found.messages)
    return Imported(messages, str(found.session.get("title") or ""), turns, settings)


def _message(message: Message, turns: set[int]) -> MessageRow:
    if message.role not in ROLES:
        raise InvalidRequest(f"the role {message.role!r} of message {message.seq} is not known")
    turn = message.turn if message.turn is None or message.turn in turns else IMPORTED_TURN
    return MessageRow(
        session_id="",
        role=ROLES[message.role],
        content=message.content,
        ts=moment(message.ts),
        turn=turn,
        thinking=message.thinking,
        tool_calls=tuple(message.tool_calls),
        plan=tuple(message.plan),
        token_count=message.token_count,
        is_summary=message.is_summary,
        archived=message.archived,
        truncated=message.truncated,
    )


def _turn(turn: ExportedTurn) -> TurnRow:
    if not 0 < turn.turn_index < MAX_TURNS:
        raise ValueError(f"{turn.turn_index} is not the number of a turn")
    return TurnRow(
        session_id="",
        turn_index=turn.turn_index,
        state=TurnState.ENDED,
        prompt=turn.prompt,
        queued_at=moment(turn.queued_at),
        outcome=turn.outcome,
        stop_reason=turn.stop_reason,
        error=turn.error,
        code=turn.code,
        retry_of=turn.retry_of,
        started_at=moment(turn.started_at) if turn.started_at else None,
        ended_at=moment(turn.ended_at) if turn.ended_at else None,
        usage=turn.usage.model_dump(exclude_unset=True) if turn.usage else None,
    )


def _settings(session: Json) -> Json:
    """What a session is set to, checked: an export may have been edited."""
    return {
        "agent": session.get("agent"),
        "model": session.get("model"),
        "persona": session.get("persona"),
        "meta": None if session.get("meta") is None else dict(session["meta"]),
        "labels": [str(label) for label in session.get("labels") or []],
        "pinned": bool(session.get("pinned")),
        "permission_mode": PermissionMode(session.get("permission_mode", PermissionMode.APPROVE_ALL)),
        "on_interrupt": OnInterrupt(session.get("on_interrupt", OnInterrupt.HOLD)),
        "plan_mode": bool(session.get("plan_mode")),
    }
