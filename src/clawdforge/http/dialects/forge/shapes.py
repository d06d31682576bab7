"""Rows to the wire models that the forge dialect answers with: pure functions, times in whole seconds.

Every reply is checked as it is built: that takes a few microseconds, less than pydantic's `model_construct`
would take for the same fields. A row that somebody edited is shown as it is.
"""

import logging
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from clawdforge.core.models.events import StoredEvent
from clawdforge.core.models.rows import (
    MessageRow,
    PauseRow,
    PendingPermission,
    PermissionRow,
    TokenRow,
    TurnNode,
    TurnRow,
)
from clawdforge.core.rules.branches import Branches
from clawdforge.core.rules.mcp_servers import name_servers
from clawdforge.core.rules.retention import Ages, find_dates
from clawdforge.core.rules.sessions import SessionState
from clawdforge.core.rules.turns import was_heard
from clawdforge.core.services.nodes import NodeStanding
from clawdforge.http.errors import encode
from clawdforge.wire.admin import TokenInfo, TokenReply
from clawdforge.wire.base import Json, Micros, to_iso, to_seconds
from clawdforge.wire.event_forms import Form
from clawdforge.wire.message import Message
from clawdforge.wire.nodes import Node
from clawdforge.wire.pauses import Pause
from clawdforge.wire.session import Session
from clawdforge.wire.tree import ForkInfo, ForkOrigin, TreeReply, TreeTurn
from clawdforge.wire.turn import (
    AppPermission,
    Outcome,
    Permission,
    Turn,
    TurnLimits,
    TurnState,
    TurnSummary,
    Usage,
)

SessionT = TypeVar("SessionT", bound=Session)
ReplyT = TypeVar("ReplyT", bound=BaseModel)

log = logging.getLogger(__name__)


def build_reply(kind: type[ReplyT], /, **fields: Any) -> ReplyT:
    """A reply with these fields, even where one is odd: a single row must not make a list unreadable."""
    try:
        return kind(**fields)
    except ValidationError as error:
        names = ", ".join(sorted({str(problem["loc"][0]) for problem in error.errors()}))
        key = fields.get("session_id") or fields.get("turn_index") or fields.get("seq")
        log.warning("%s %s has odd values in the database: %s", kind.__name__, key, names)
        return kind.model_construct(**fields)


def session(state: SessionState, kind: type[SessionT], ages: Ages) -> SessionT:
    """A `Session` of a list, or the `SessionReply` that a caller gets for it alone."""
    row = state.row
    dates = find_dates(row, ages, is_busy=state.is_busy)
    return build_reply(
        kind,
        session_id=row.session_id,
        id=row.session_id,
        app_name=row.app_name,
        agent=row.agent,
        model=row.model,
        persona=row.persona,
        cwd=row.cwd,
        workspace=row.cwd,
        title=row.title,
        meta=row.meta,
        labels=list(row.labels),
        pinned=row.pinned,
        permission_mode=row.permission_mode,
        on_interrupt=row.on_interrupt,
        retention=row.retention,
        plan_mode=row.plan_mode,
        project_key=row.project_key,
        parent_session_id=row.parent_session_id,
        forked_from=row.forked_from,
        depth=row.depth,
        mcp_servers=name_servers(row.mcp_servers),
        state="active" if row.closed_at is None else "ended",
        live=row.closed_at is None,
        created_at=to_seconds(row.created_at),
        updated_at=to_seconds(row.updated_at),
        updated_us=row.updated_at,
        last_turn_at=to_seconds(row.last_turn_at),
        closed_at=to_seconds(row.closed_at),
        closes_at=to_seconds(dates.closes_at),
        deletes_at=to_seconds(dates.deletes_at),
        turn_count=row.turn_count,
        running_turn=state.running_turn,
        queued_turns=state.queued_turns,
        activity=state.activity,
        pending_permissions=state.pending,
        last_outcome=row.last_outcome,
        paused=pause(state.pause),
        message_count=row.message_count,
        context=row.context,
        head=row.head,
        can_redo=bool(row.redo),
    )


def pause(row: PauseRow | None) -> Pause | None:
    return None if row is None else in_force(row)


def in_force(row: PauseRow) -> Pause:
    return build_reply(
        Pause,
        app_name=row.app_name or None,
        agent=row.agent or None,
        reason=row.reason,
        since=to_seconds(row.paused_at),
    )


def turn(row: TurnRow, kind: type[Turn] = Turn, *, position: int | None = None, **more: Any) -> Turn:
    return build_reply(
        kind,
        **more,
        position=position,
        turn_index=row.turn_index,
        state=row.state,
        outcome=row.outcome,
        stop_reason=row.stop_reason,
        error=row.error,
        code=row.code,
        heard=row.started_at is not None and was_heard(row) if row.state is TurnState.ENDED else None,
        retry_after=row.error_extra.get("retry_after"),
        prompt=row.prompt,
        files=list(row.files),
        retry_of=row.retry_of,
        cut=row.cut,
        queued_at=to_seconds(row.queued_at),
        started_at=to_seconds(row.started_at),
        ended_at=to_seconds(row.ended_at),
        duration_ms=duration_ms(row),
        first_seq=row.first_seq,
        last_seq=row.last_seq,
        usage=usage(row.usage),
        limits=limits(row.limits),
        stopped_by=row.stopped_by,
    )


def duration_ms(row: TurnRow) -> int | None:
    """From its start to its end; a turn that never started took no time."""
    if row.ended_at is None:
        return None
    return 0 if row.started_at is None else max(0, row.ended_at - row.started_at) // 1000


def usage(stored: Json | None) -> Usage | None:
    return build_reply(Usage, **stored) if isinstance(stored, dict) else stored


def limits(stored: Json) -> TurnLimits | None:
    return build_reply(TurnLimits, **stored) if stored and isinstance(stored, dict) else None


def turn_opening(row: TurnRow) -> bytes:
    """wire.turn.TurnReply up to its events, which follow as ready bytes."""
    summary = build_reply(
        TurnSummary,
        session_id=row.session_id,
        turn_index=row.turn_index,
        stop_reason=row.stop_reason,
        outcome=row.outcome or Outcome.COMPLETED,
        duration_ms=duration_ms(row) or 0,
        if_busy=row.if_busy,
        usage=usage(row.usage),
        stopped_by=row.stopped_by,
    )
    return encode(summary)[:-1] + b',"events":['


def events_page(events: Sequence[StoredEvent], after: int, form: Form) -> bytes:
    """wire.event.EventPage, joined from the bytes of its events."""
    following = events[-1].seq if events else after
    return b'{"ok":true,"events":[%b],"next":%d}' % (join_events(events, form), following)


def join_events(events: Sequence[StoredEvent], form: Form) -> bytes:
    """The events of a JSON list."""
    return b",".join([event.in_form(form) for event in events])


def message(row: MessageRow) -> Message:
    return build_reply(
        Message,
        seq=row.seq,
        role=row.role,
        content=row.content,
        ts=to_iso(row.ts),
        turn=row.turn,
        thinking=row.thinking,
        tool_calls=list(row.tool_calls),
        plan=list(row.plan),
        token_count=row.token_count,
        is_summary=row.is_summary,
        archived=row.archived,
        pending=row.pending,
        truncated=row.truncated,
    )


def tree(found: Branches) -> TreeReply:
    forks: dict[int | None, list[ForkInfo]] = {}
    for one in found.forks:
        forks.setdefault(one.after_turn, []).append(ForkInfo(session_id=one.session_id, title=one.title))
    row = found.session
    origin = None
    if row.forked_from is not None:
        origin = ForkOrigin(session_id=row.forked_from, after_turn=row.forked_after)
    turns = [_tree_turn(node, forks.get(node.turn_index, [])) for node in found.turns]
    return TreeReply(
        session_id=row.session_id, forked_from=origin, turns=turns, forks=forks.get(0, []), next=found.next
    )


def node(one: NodeStanding) -> Node:
    row = one.row
    return Node(
        node=row.node,
        name=row.name,
        version=row.version,
        started_at=to_seconds(row.started_at),
        state=row.state,
        sessions=one.sessions,
        turns=one.turns,
        agents=one.tells.agents,
        runs=one.tells.runs,
        differs=one.differs,
        is_this=one.is_this,
        is_on_duty=one.is_on_duty,
        is_drained=one.is_drained,
    )


def _tree_turn(node: TurnNode, forks: list[ForkInfo]) -> TreeTurn:
    return build_reply(
        TreeTurn,
        turn_index=node.turn_index,
        parent=node.parent or None,
        cut=node.cut,
        state=node.state,
        outcome=node.outcome,
        prompt=node.prompt,
        queued_at=to_seconds(node.queued_at),
        forks=forks,
    )


def permission(row: PermissionRow) -> Permission:
    return build_reply(Permission, **_permission_fields(row))


def app_permission(found: PendingPermission, expires_at: Micros | None) -> AppPermission:
    return build_reply(
        AppPermission,
        **_permission_fields(found.row),
        title=found.title,
        agent=found.agent,
        expires_at=to_seconds(expires_at),
    )


def _permission_fields(row: PermissionRow) -> Json:
    return {
        "permission_id": row.permission_id,
        "session_id": row.session_id,
        "turn_index": row.turn_index,
        "tool": row.tool,
        "kind": row.kind,
        "request": row.request,
        "options": list(row.options),
        "state": row.state,
        "decision": row.decision,
        "reason": row.reason,
        "requested_at": to_seconds(row.requested_at),
        "decided_at": to_seconds(row.decided_at),
    }


def token(row: TokenRow) -> TokenInfo:
    return build_reply(
        TokenInfo,
        token_id=row.token_id,
        app_name=row.app_name,
        note=row.note,
        created_at=to_seconds(row.created_at),
        expires_at=to_seconds(row.expires_at),
        revoked_at=to_seconds(row.revoked_at),
        scopes=list(row.scopes),
        last_used_at=to_seconds(row.last_used_at),
    )


def new_token(token: str, row: TokenRow) -> TokenReply:
    return TokenReply(
        app_name=row.app_name,
        token=token,
        token_id=row.token_id,
        expires_at=to_seconds(row.expires_at),
        scopes=list(row.scopes),
    )
