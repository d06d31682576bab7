"""The exported session: JSON that import reads back, and Markdown for people. Pure functions."""

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, Final

from clawdforge.core.models.rows import MessageRow, SessionRow, TurnRow
from clawdforge.core.services.transfer import Exported
from clawdforge.http.dialects.forge import shapes
from clawdforge.http.errors import encode
from clawdforge.wire.base import Json, Micros, to_iso, to_iso_seconds
from clawdforge.wire.event_forms import Form
from clawdforge.wire.message import Role
from clawdforge.wire.session import Export, ExportedTurn

GROUP_ROWS: Final = 50
NAMES = {Role.USER: "User", Role.ASSISTANT: "Assistant", Role.TOOL: "Tool", Role.SYSTEM: "System"}


def document(found: Exported) -> Iterator[bytes]:
    """wire.session.Export in pieces: each list is written out a few rows at a time."""
    events = None if found.events is None else list[Any]()
    frame = encode(Export(session=_session(found.session), messages=[], turns=[], events=events))
    lists: list[tuple[bytes, Iterator[bytes]]] = [
        (b'"messages":[', (encode(shapes.message(row)) for row in found.messages)),
        (b'"turns":[', (encode(_turn(row)) for row in found.turns)),
    ]
    if found.events is not None:
        lists.append((b'"events":[', (event.in_form(Form.NESTED) for event in found.events)))
    start = 0
    for name, rows in lists:
        end = frame.rindex(name) + len(name)  # the session's own data comes before all of these
        yield frame[start:end]
        yield from _in_groups(rows, b",")
        start = end
    yield frame[start:]


def _in_groups(rows: Iterator[bytes], between: bytes) -> Iterator[bytes]:
    """Rows with something between them, so many at a time that it takes a moment only."""
    lead = b""
    while group := list(islice(rows, GROUP_ROWS)):
        yield lead + between.join(group)
        lead = between


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
        limits=shapes.limits(row.limits),
        stopped_by=row.stopped_by,
    )


def _time(at: Micros | None) -> str | None:
    return None if at is None else to_iso(at)


def markdown(found: Exported) -> Iterator[bytes]:
    """The transcript as a page to read: what is archived comes first, and says so."""
    row = found.session
    model = f" ({row.model})" if row.model else ""
    head = (f"# {row.title or 'Untitled'}", f"{row.agent}{model}, {to_iso_seconds(row.created_at)}")
    parts = (part.encode() for part in chain(head, map(_part, found.messages)))
    yield from _in_groups(parts, b"\n\n")
    yield b"\n"


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
