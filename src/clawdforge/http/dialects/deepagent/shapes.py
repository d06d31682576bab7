"""Rows to what the deepagent dialect shows: pure functions, times as ISO text in whole seconds."""

import orjson

from clawdforge.core.models.rows import MessageRow, SessionRow
from clawdforge.core.rules.personas import BUILTIN
from clawdforge.core.services.messages import Detail, Summary
from clawdforge.wire.base import Json, to_iso_seconds
from clawdforge.wire.sse import encode


def state(row: SessionRow) -> str:
    return "active" if row.closed_at is None else "ended"


def ack(row: SessionRow, **more: int) -> Json:
    """wire.deepagent.SessionAck"""
    known: Json = {"seq": None, "turn_index": None, **more}
    return {"ok": True, "session_id": row.session_id, "id": row.session_id, "state": state(row), **known}


def summary(found: Summary) -> Json:
    """wire.deepagent.SessionSummary"""
    row = found.row
    return {
        "id": row.session_id,
        "session_id": row.session_id,
        "persona_name": row.persona or BUILTIN,
        "agent": row.agent,
        "model": row.model,
        "repo_path": row.cwd,
        "cwd": row.cwd,
        "workspace": row.cwd,
        "project_key": row.project_key,
        "title": row.title,
        "state": state(row),
        "plan_mode": row.plan_mode,
        "parent_session_id": row.parent_session_id,
        "depth": row.depth,
        "message_count": row.message_count,
        "total_input_tokens": row.total_input_tokens,
        "total_output_tokens": row.total_output_tokens,
        "created_at": to_iso_seconds(row.created_at),
        "updated_at": to_iso_seconds(row.updated_at),
        "last_message_at": to_iso_seconds(found.last_message_at),
        "ended_at": to_iso_seconds(row.closed_at),
    }


def message(row: MessageRow) -> Json:
    """wire.deepagent.MessageInfo"""
    return {
        "seq": row.seq,
        "role": row.role,
        "content": row.content,
        "tool_calls": list(row.tool_calls),
        "token_count": row.token_count,
        "is_summary": row.is_summary,
        "archived": row.archived,
        "pending": row.pending,
        "truncated": row.truncated,
        "turn": row.turn,
        "ts": to_iso_seconds(row.ts),
    }


def detail(found: Detail) -> Json:
    """wire.deepagent.SessionDetail"""
    return {
        "ok": True,
        "session": summary(found.summary),
        "messages": [message(row) for row in found.messages],
        "sub_sessions": [summary(child) for child in found.children],
    }


def frame(row: MessageRow) -> bytes:
    """One message of the stream; a reader resumes after its seq."""
    return encode(orjson.dumps(message(row)), event="message", id=str(row.seq))
