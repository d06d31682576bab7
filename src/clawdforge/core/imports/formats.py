"""Converts other programs' transcripts into our messages: one function for each format, without any I/O.

A list of `messages` comes from a program that can be corrected, so a bad row is refused by its number.
Session files of other tools (`claude`, `codex`) are taken as they are: lines that we do not know are skipped.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from pydantic import ValidationError

from clawdforge.core.imports import tool_calls
from clawdforge.core.imports.transcripts import Line, Transcript, read_claude, read_codex
from clawdforge.core.models.rows import MessageRow, TurnRow
from clawdforge.core.rules.memory import IMPORTED_TURN
from clawdforge.wire.base import Json, Micros, from_iso
from clawdforge.wire.errors import InvalidRequest
from clawdforge.wire.message import Message, Role, estimate_tokens
from clawdforge.wire.session import (
    CreateSession,
    Export,
    ExportedTurn,
    ImportRequest,
    OnInterrupt,
    PermissionMode,
)
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
MAX_TOKENS: Final = 1 << 40  # of one message; the sum of all of them fits into a column


@dataclass(frozen=True, slots=True)
class Imported:
    """A transcript that was read. The session fills in where `seq` or `ts` is 0."""

    messages: tuple[MessageRow, ...]
    title: str = ""
    turns: tuple[TurnRow, ...] = ()
    settings: Json = field(default_factory=dict)
    skipped: int = 0


def read_import(request: ImportRequest) -> Imported:
    """Read a transcript. Raises InvalidRequest, which says what is wrong with it."""
    if request.format == "clawdforge":
        return _read_export(request)
    if request.format == "messages":
        if request.messages is None:
            raise InvalidRequest('give the transcript as a list in "messages"')
        rows = [_message_of_row(number, row) for number, row in enumerate(request.messages)]
        return Imported(tool_calls.join_results(rows, map(_has_failed, request.messages)))
    return _read_file(request, read_claude if request.format == "claude" else read_codex)


def _read_file(request: ImportRequest, reader: Callable[[list[Json]], Transcript]) -> Imported:
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
        raise InvalidRequest(f"this text contains no message; is it a {request.format} session file?")
    settings = {"model": found.model} if found.model else {}
    return Imported(
        tuple(map(_message_of_line, found.lines)), found.title, (), settings, junk + found.skipped
    )


def _message_of_line(line: Line) -> MessageRow:
    text = line.text
    return MessageRow(
        session_id="",
        role=line.role,
        content=text,
        ts=parse_time(line.at),
        turn=IMPORTED_TURN,
        thinking=line.thinking,
        tool_calls=tuple(line.tools.values()),
        token_count=estimate_tokens(text) + estimate_tokens(line.thinking),
        is_summary=line.is_summary,
    )


def _message_of_row(number: int, row: Json) -> MessageRow:
    role = ROLES.get(str(row.get("role")).lower())
    if role is None:
        raise InvalidRequest(f"message {number} has an unknown role; use one of {', '.join(sorted(ROLES))}")
    text = content_text(row.get("content"))
    if text is None:
        raise InvalidRequest(f"the content of message {number} is neither text nor a list of text blocks")
    thinking = row.get("thinking") or row.get("reasoning") or row.get("reasoning_content")
    thinking = thinking if isinstance(thinking, str) else ""
    return MessageRow(
        session_id="",
        role=role,
        content=text,
        ts=parse_time(row.get("ts") or row.get("timestamp")),
        turn=IMPORTED_TURN,
        thinking=thinking,
        tool_calls=tool_calls.read_calls(row, role),
        token_count=estimate_tokens(text) + estimate_tokens(thinking),
        is_summary=row.get("is_summary") is True,
    )


def _has_failed(row: Json) -> bool:
    """Whether a tool's row says that the call failed."""
    return row.get("is_error") is True or row.get("status") == "error"


def content_text(content: Any) -> str | None:
    """A text as it is, or the text of a list of blocks; '' for None, and None for anything else."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        return None
    parts = [part.get("text") if isinstance(part, dict) else part for part in content]
    return "\n".join(part for part in parts if isinstance(part, str))


def parse_time(value: Any) -> Micros:
    """A time in ISO format or in seconds; 0 if it is neither."""
    try:
        if isinstance(value, str) and value:
            return max(0, from_iso(value))
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e11:
            return int(value * 1_000_000)
    except (ValueError, OverflowError):
        return 0
    return 0


def _read_export(request: ImportRequest) -> Imported:
    """Read our own export, given as an object or as the text of its file."""
    try:
        whole = request.export if request.export is not None else orjson.loads(request.text or "")
        found = Export.model_validate(whole)
        turns = tuple(_turn_of_export(turn) for turn in found.turns)
        settings = _read_settings(found.session)
    except orjson.JSONDecodeError:
        raise InvalidRequest('give an export of this server in "export", or its JSON in "text"') from None
    except ValidationError as error:
        raise InvalidRequest(f"this is not an export of this server: {explain_invalid(error)}") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InvalidRequest(f"this is not an export of this server: {str(error)[:500]}") from None
    if found.version != 1:
        raise InvalidRequest(f"this export has version {found.version}; this server reads version 1")
    known = {turn.turn_index for turn in turns}
    if len(known) < len(turns):
        raise InvalidRequest("this export names a turn twice")
    messages = tuple(_message_of_export(message, known) for message in found.messages)
    return Imported(messages, str(found.session.get("title") or ""), turns, settings)


def _message_of_export(message: Message, turns: set[int]) -> MessageRow:
    if message.role not in ROLES:
        raise InvalidRequest(f"the role {message.role!r} of message {message.seq} is not known")
    if not 0 <= message.token_count < MAX_TOKENS:
        raise InvalidRequest(f"message {message.seq} cannot have {message.token_count} tokens")
    turn = message.turn if message.turn is None or message.turn in turns else IMPORTED_TURN
    return MessageRow(
        session_id="",
        role=ROLES[message.role],
        content=message.content,
        ts=parse_time(message.ts),
        turn=turn,
        thinking=message.thinking,
        tool_calls=tuple(message.tool_calls),
        plan=tuple(message.plan),
        token_count=message.token_count,
        is_summary=message.is_summary,
        archived=message.archived,
        truncated=message.truncated,
    )


def _turn_of_export(turn: ExportedTurn) -> TurnRow:
    if not 0 < turn.turn_index < MAX_TURNS:
        raise ValueError(f"{turn.turn_index} is not the number of a turn")
    if turn.retry_of is not None and not 0 < turn.retry_of < MAX_TURNS:
        raise ValueError(f"turn {turn.turn_index} cannot be a retry of turn {turn.retry_of}")
    return TurnRow(
        session_id="",
        turn_index=turn.turn_index,
        state=TurnState.ENDED,
        prompt=turn.prompt,
        queued_at=parse_time(turn.queued_at),
        outcome=turn.outcome,
        stop_reason=turn.stop_reason,
        error=turn.error,
        code=turn.code,
        retry_of=turn.retry_of,
        started_at=parse_time(turn.started_at) if turn.started_at else None,
        ended_at=parse_time(turn.ended_at) if turn.ended_at else None,
        usage=turn.usage.model_dump(exclude_unset=True) if turn.usage else None,
        limits=turn.limits.model_dump(exclude_none=True) if turn.limits else {},
        stopped_by=turn.stopped_by,
    )


def _read_settings(session: Json) -> Json:
    """The session's settings, checked because an export may have been edited."""
    checked = CreateSession(
        agent=session.get("agent") or None,
        model=session.get("model") or None,
        persona=session.get("persona"),
        meta=session.get("meta"),
        labels=[str(label) for label in session.get("labels") or []],
    )
    return {
        **checked.model_dump(include={"agent", "model", "persona", "meta", "labels"}),
        "pinned": bool(session.get("pinned")),
        "permission_mode": PermissionMode(session.get("permission_mode", PermissionMode.APPROVE_ALL)),
        "on_interrupt": OnInterrupt(session.get("on_interrupt", OnInterrupt.HOLD)),
        "plan_mode": bool(session.get("plan_mode")),
    }


def explain_invalid(error: ValidationError) -> str:
    """The first things that pydantic found, in one line."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in problems[:5])
