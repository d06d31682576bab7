"""Rows to what the hermes dialect shows: pure functions, times in float seconds."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, Final

import orjson

from clawdforge.core.models.rows import MessageRow, SessionRow, TurnRow
from clawdforge.core.rules.transcripts import Ending, Entry, Transcript
from clawdforge.wire.base import Json, to_float
from clawdforge.wire.hermes import HermesStatus
from clawdforge.wire.message import Role
from clawdforge.wire.turn import Outcome

UNTITLED: Final = "Untitled"
ARCHIVED: Final = "archived"
PROFILE: Final = "default"
PROVIDER: Final = "model_provider"
"""Where a session's `meta` has it, under the name that it has on the wire."""
OWN_MODEL: Final = "default"
"""The name of the model that an agent uses by itself."""
TITLE_CHARS: Final = 80
PREVIEW_CHARS: Final = 40
SNIPPET_CHARS: Final = 200


def stream_id(session_id: str, turn_index: int | None) -> str | None:
    """The name of a turn's stream."""
    return None if turn_index is None else f"{session_id}:{turn_index}"


def split_stream_id(text: str) -> tuple[str, int] | None:
    """Session and turn of a stream; None when it names none."""
    session_id, _, index = text.rpartition(":")
    plain = index.isascii() and index.isdecimal() and len(index) < 16
    return (session_id, int(index)) if session_id and plain else None


def title(row: SessionRow) -> str:
    return row.title or UNTITLED


def profile(row: SessionRow) -> str:
    """The profile that the session was made with. The page lists only those of the one it shows."""
    given = (row.meta or {}).get("profile")
    return given if isinstance(given, str) and given else PROFILE


def provider(row: SessionRow) -> str | None:
    """What was given with the model; the agent chooses its provider itself."""
    given = (row.meta or {}).get(PROVIDER)
    return given if isinstance(given, str) and given else None


def workspace(row: SessionRow, page: bool) -> str:
    """The folder that somebody chose, or the session's own.

    The page hands a session's workspace to the next chat, and takes two that differ for two choices. It is
    shown the folder that has all own ones; `cwd` is the session's own there too.
    """
    return str(PurePosixPath(row.cwd).parent) if page and row.own_cwd else row.cwd


def model(row: SessionRow) -> str:
    return row.model or OWN_MODEL


def chosen_model(given: str | None) -> str | None:
    """The model that somebody asks for: none when it is the one that the agent uses by itself."""
    return None if given in (None, "", OWN_MODEL) else given


def clean_title(given: str) -> str:
    """What is stored for a title that somebody gave."""
    return given.strip()[:TITLE_CHARS]


def compact(found: Transcript, page: bool) -> Json:
    """wire.hermes.HermesSession"""
    row, pending = found.state.row, found.pending
    return {
        "session_id": row.session_id,
        "id": row.session_id,
        "title": title(row),
        "workspace": workspace(row, page),
        "cwd": row.cwd,
        "model": model(row),
        "model_provider": provider(row),
        "message_count": found.count,
        "created_at": to_float(row.created_at),
        "updated_at": to_float(row.updated_at),
        "pinned": row.pinned,
        "archived": ARCHIVED in row.labels,
        "project_id": None,
        "profile": profile(row),
        "personality": None,
        "parent_session_id": row.forked_from or row.parent_session_id,
        "input_tokens": row.input_tokens,
        "output_tokens": row.output_tokens,
        "estimated_cost": row.cost_usd,
        "state": "active" if row.closed_at is None else "ended",
        "is_streaming": found.state.running_turn is not None,
        "active_stream_id": stream_id(row.session_id, pending.turn if pending else None),
        "pending_user_message": pending.content if pending else None,
        "pending_attachments": [],
        "pending_started_at": to_float(pending.ts) if pending else None,
        "regeneration_revision": revision(row) if found.state.running_turn is None else None,
    }


def revision(row: SessionRow) -> str | None:
    """Changes with what the last answer is; a page sends it back to say which one it wants anew.

    The head would not do: it also moves when a title changes.
    """
    can_run = row.message_count > 0 and row.closed_at is None
    return f"{row.last_turn}.{row.message_count}" if can_run else None


def session(found: Transcript, page: bool) -> Json:
    """The same with its messages. A prompt whose answer is not whole is not among them."""
    shown = found.entries
    window = {"_messages_truncated": found.first > 0, "_messages_offset": found.first}
    rows = {"messages": list(map(entry, shown)), "tool_calls": tools(shown)}
    return {**compact(found, page), **window, **rows}


def exported(found: Transcript) -> Json:
    """What an import takes back: what was said, and nothing else."""
    return session(replace(found, entries=found.messages, endings=()), page=False)


def status(found: Transcript, page: bool) -> Json:
    """wire.hermes.HermesStatus"""
    row, whole = found.state.row, compact(found, page)
    more = {"ok": True, "agent_running": whole["is_streaming"], "total_tokens": _total_tokens(row)}
    return {key: {**whole, **more}[key] for key in HermesStatus.model_fields}


def usage(row: SessionRow) -> Json:
    """wire.hermes.HermesUsage"""
    return {
        "ok": True,
        "input_tokens": row.input_tokens,
        "output_tokens": row.output_tokens,
        "total_tokens": _total_tokens(row),
        "estimated_cost": row.cost_usd,
        "model": model(row),
    }


def entry(one: Entry) -> Json:
    return ending(one.turn) if isinstance(one, Ending) else message(one)


def ending(turn: TurnRow) -> Json:
    """What the page shows after a turn that did not end well. Nobody said it, and no agent gets to see it."""
    why = turn.error or "the agent gave no reason"
    words = f"**Interrupted:** {why}" if turn.outcome is Outcome.INTERRUPTED else f"**Error:** {why}"
    return {"role": Role.ASSISTANT, "content": words, "timestamp": to_float(turn.ended_at), "_error": True}


def message(row: MessageRow) -> Json:
    """One line of the transcript, as an import takes it back."""
    shown: Json = {"role": row.role, "content": row.content, "timestamp": to_float(row.ts), "seq": row.seq}
    if row.thinking:
        shown["reasoning"] = row.thinking
    if row.role == Role.TOOL:
        for call in row.tool_calls[:1]:
            shown |= {"tool_call_id": call.get("toolCallId"), "name": call.get("title")}
    elif row.tool_calls:
        shown["tool_calls"] = list(map(_call, row.tool_calls))
    return shown


def tools(rows: Sequence[Entry]) -> list[Json]:
    """The tool calls of a transcript, each with the place of its message."""
    return [
        {
            "name": _name(call),
            "tid": call.get("toolCallId"),
            "args": snapshot(call.get("rawInput")),
            "snippet": str(call.get("rawOutput") or "")[:SNIPPET_CHARS],
            "is_error": call.get("status") == "failed",
            "done": call.get("status") in ("completed", "failed"),
            "assistant_msg_idx": index,
        }
        for index, row in enumerate(rows)
        if isinstance(row, MessageRow)
        for call in row.tool_calls
        if row.role != Role.TOOL  # the result of a call that is listed already
    ]


def put_calls_inside(messages: Sequence[Json], listed: Sequence[Any]) -> list[Json]:
    """A transcript whose calls are listed beside it, by the place of their message, with the calls inside."""
    found: dict[int, list[Json]] = {}
    for call in listed:
        index = call.get("assistant_msg_idx") if isinstance(call, dict) else None
        if isinstance(index, int) and 0 <= index < len(messages) and not _lists_calls(messages[index]):
            found.setdefault(index, []).append(
                {
                    "toolCallId": str(call.get("tid") or ""),
                    "title": str(call.get("name") or "tool"),
                    "rawInput": call.get("args"),
                    "rawOutput": str(call.get("snippet") or ""),
                    "status": "failed" if call.get("is_error") else "completed",
                }
            )
    return [{**row, "tool_calls": found[at]} if at in found else row for at, row in enumerate(messages)]


def _lists_calls(row: Json) -> bool:
    blocks = row.get("content")
    inside = isinstance(blocks, list) and any(
        isinstance(block, dict) and block.get("type") == "tool_use" for block in blocks
    )
    return inside or bool(row.get("tool_calls"))


def _call(call: Json) -> Json:
    """A call as OpenAI writes it: its arguments are text."""
    given = call.get("rawInput")
    arguments = given if isinstance(given, str) else orjson.dumps(given or {}).decode()
    return {
        "id": call.get("toolCallId"),
        "type": "function",
        "function": {"name": _name(call), "arguments": arguments},
    }


def _name(call: Json) -> str:
    return str(call.get("title") or call.get("kind") or "tool")


def snapshot(args: Any) -> Json:
    """The beginning of a tool's arguments, short enough for one line each."""
    if not isinstance(args, dict):
        return {}
    return {str(name)[:120]: _shorten(value) for name, value in list(args.items())[:4]}


def preview(text: str) -> str:
    """The beginning of what was taken back."""
    return text if len(text) <= PREVIEW_CHARS else text[:PREVIEW_CHARS] + "..."


def _shorten(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 120 else text[:120] + "..."


def _total_tokens(row: SessionRow) -> int:
    return row.input_tokens + row.output_tokens
