"""The exported session: JSON that import reads back, and Markdown for people. Pure functions."""

import orjson

from clawdforge.core.model import MessageRow, SessionRow, StoredEvent, TurnRow
from clawdforge.core.services.transfer import Exported
from clawdforge.http.dialects.forge import shapes
from clawdforge.wire.base import Json, Micros, to_iso, to_iso_seconds
from clawdforge.wire.event_forms import Form
from clawdforge.wire.message import Role
from clawdforge.wire.session import Export, ExportedTurn

NAMES = {Role.USER: "User", Role.ASSISTANT: "Assistant", Role.TOOL: "Tool", Role.SYSTEM: "System"}


def document(found: Exported) -> Export:
    """The whole session; its events go in as ready bytes."""
    events = None if found.events is None else _nested(found.events)
    return Export(
        session=_session(found.session),
        messages=[shapes.message(row) for row in found.messages],
        turns=[_turn(row) for row in found.turns],
        events=events,
    )


def _nested(events: list[StoredEvent]) -> list[orjson.Fragment]:
    return [orjson.Fragment(event.in_form(Form.NESTED)) for event in events]


def _session(row: SessionRow) -> Json:
    return {
        "session_id": row.session_id,
        "title": row.title,
        "agent": row.agent,
        "model": row.model,
        "persona": row.persona,
        "meta": row.meta,
        "labels": list(row.labels),
        "pinned": row.pinned,
        "permission_mode": row.permission_mode,
        "on_interrupt": row.on_interrupt,
        "retention": row.retention,
        "plan_mode": row.plan_mode,
        "cwd": row.cwd,
        "created_at": to_iso(row.created_at),
        "updated_at": to_iso(row.updated_at),
        "forked_from": row.forked_from,
    }


def _turn(row: TurnRow) -> ExportedTurn:
    return shapes.build_reply(
        ExportedTurn,
        turn_index=row.turn_index,
        prompt=row.prompt,
        outcome=row.outcome,
        stop_reason=row.stop_reason,
        error=row.error,
        code=row.code,
        retry_of=row.retry_of,
        queued_at=_time(row.queued_at),
        started_at=_time(row.started_at),
        ended_at=_time(row.ended_at),
        usage=shapes.usage(row.usage),
    )


def _time(at: Micros | None) -> str | None:
    return None if at is None else to_iso(at)


def markdown(found: Exported) -> str:
    """The transcript as a page to read: what is archived comes first, and says so."""
    row = found.session
    model = f" ({row.model})" if row.model else ""
    parts = [f"# {row.title or 'Untitled'}", f"{row.agent}{model}, {to_iso_seconds(row.created_at)}"]
    parts += [_part(message) for message in found.messages]
    return "\n\n".join(parts) + "\n"


def _part(row: MessageRow) -> str:
    name = NAMES.get(Role(row.role), row.role.title())
    marks = [word for word, shown in (("archived", row.archived), ("summary", row.is_summary)) if shown]
    head = f"## {name}" + (f" ({', '.join(marks)})" if marks else "")
    parts = [head]
    if row.thinking:
        parts.append("\n".join(f"> {line}" for line in row.thinking.splitlines()))
    parts += [f"- `{tool.get('title') or tool.get('name') or 'tool'}`" for tool in row.tool_calls]
    if row.content:
        parts.append(row.content)
    return "\n\n".join(parts)
