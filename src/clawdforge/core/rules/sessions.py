"""The rules for creating, changing and closing sessions, as plain functions over a transaction.

Only these change a session's own fields. Turns and history have their own rules.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from clawdforge.core.clock import SECOND
from clawdforge.core.models.events import draft
from clawdforge.core.models.rows import PauseRow, SessionRow
from clawdforge.core.ports import Tx, View
from clawdforge.core.rules import memory
from clawdforge.core.rules.activity import AT_WORK, find_activity
from clawdforge.core.rules.folders import need_free_folder
from clawdforge.core.rules.pauses import choose_pause, find_pause
from clawdforge.core.rules.quotas import Quotas
from clawdforge.core.rules.turns import need_open, need_session, withdraw_some
from clawdforge.core.rules.webhooks import tell_closed
from clawdforge.wire.base import Json, Micros
from clawdforge.wire.errors import InvalidRequest, SessionBusy
from clawdforge.wire.event import EventType
from clawdforge.wire.session import Activity

MAX_DEPTH = 3
UNSEEN_SECS = 3600


@dataclass(frozen=True, slots=True)
class SessionState:
    """A session's row, its running turn, its queue, and what keeps that from going on.

    `activity` is found from the turns themselves; `pending` counts what the agent has asked for.
    """

    row: SessionRow
    running_turn: int | None
    queued_turns: int
    pause: PauseRow | None = None
    activity: Activity = Activity.IDLE
    pending: int = 0

    @property
    def is_busy(self) -> bool:
        return self.running_turn is not None or self.queued_turns > 0


def state_of(view: View, row: SessionRow) -> SessionState:
    active = view.active_turn(row.session_id)
    queued = view.count_queued(row.session_id)
    pause = find_pause(view, row.agent)
    activity = find_activity(active, queued, row.last_outcome)
    pending = view.count_pending(row.session_id) if activity is Activity.WAITING else 0
    return SessionState(row, active.turn_index if active else None, queued, pause, activity, pending)


def states_of(view: View, rows: Sequence[SessionRow]) -> list[SessionState]:
    """Those of a list. Nothing is looked for in turns where a session's own row says that it is at rest."""
    pauses = view.pauses()
    return [
        state_of(view, row)
        if row.activity in AT_WORK
        else SessionState(row, None, 0, choose_pause(pauses, row.agent), row.activity)
        for row in rows
    ]


def close_session(tx: Tx, session_id: str, event: str, at: Micros) -> bool | None:
    """Close a session unless a turn runs in it (None). True when it was closed before, else False."""
    session = need_session(tx, session_id)
    if session.closed_at is not None:
        return True
    if tx.active_turn(session_id) is not None:
        return None
    while withdraw_some(tx, session_id, at):
        pass
    tx.change_session(session_id, closed_at=at)
    seq = tx.append(session_id, [draft(EventType.SESSION_CLOSED, None, at, {"why": event})])
    tell_closed(tx, session_id, seq, event, at)
    tx.audit(session_id, event, at, {})
    return False


def unseen_until(row: SessionRow) -> Micros:
    """When a session that is made in several transactions is removed, should it never be completed."""
    return row.created_at + UNSEEN_SECS * SECOND


def admit_session(tx: Tx, row: SessionRow, quotas: Quotas, above: Sequence[str] = ()) -> None:
    """Raise if this would be one session too many for its app or for the server, or if its folder is taken.

    `above` are the identities of the folders above its own.
    """
    need_free_folder(tx, row, above)
    quotas.check_sessions(tx, row.retention)


def create_session(
    tx: Tx,
    row: SessionRow,
    quotas: Quotas,
    at: Micros,
    extra: Mapping[str, Any] | None = None,
    above: Sequence[str] = (),
    *,
    is_there: bool = False,
) -> SessionState:
    """Store a session and its first event, which also contains `extra`; `above` as in `admit_session`.

    One that `is_there`, unseen, was made for a session to come: it becomes this one.
    """
    admit_session(tx, row, quotas, above)
    depth = 0
    if row.parent_session_id is not None:
        depth = need_open(tx, row.parent_session_id).depth + 1
        if depth > MAX_DEPTH:
            raise InvalidRequest(f"sub-sessions go {MAX_DEPTH} deep at most")
    changed: dict[str, Any] = {"depth": depth}
    if is_there:
        changed |= _reveal(tx, row)
    else:
        tx.add_session(row)
    tx.change_session(row.session_id, **changed)
    return announce_session(tx, row, at, extra or {})


def _reveal(tx: Tx, row: SessionRow) -> dict[str, Any]:
    """What is to be changed of a session that nobody has seen yet."""
    tx.reveal_session(row.session_id)
    unseen = need_session(tx, row.session_id)
    names = [field.name for field in fields(row)]
    return {name: value for name in names if (value := getattr(row, name)) != getattr(unseen, name)}


def announce_session(tx: Tx, row: SessionRow, at: Micros, extra: Mapping[str, Any]) -> SessionState:
    """Append the first event of a session."""
    fields = {"agent": row.agent, "model": row.model, "cwd": row.cwd, "title": row.title, "meta": row.meta}
    tx.append(row.session_id, [draft(EventType.SESSION_CREATED, None, at, {**fields, **extra})])
    tx.audit(row.session_id, "create", at, {"agent": row.agent, **extra})
    return state_of(tx, need_session(tx, row.session_id))


def patch_session(
    tx: Tx,
    session_id: str,
    changes: Json,
    expected_head: int | None,
    quotas: Quotas,
    at: Micros,
    *,
    fresh: bool = False,
) -> SessionState:
    """Change what is given. With `fresh`, another model begins a context, as another agent does."""
    session = need_session(tx, session_id, expected_head)
    changed = {name: value for name, value in changes.items() if getattr(session, name) != value}
    if "retention" in changed and session.closed_at is None:
        quotas.check_pool(tx, changed["retention"])
    fields: Json = {"changes": changed}
    if changed.keys() & {"agent", "model"}:
        if tx.active_turn(session_id) is not None:
            raise SessionBusy("the agent and the model cannot be changed while a turn runs")
        if memory.outlives(changed) and not fresh:
            fields["keeps_context"] = True
        else:
            plan = memory.TRANSCRIPT if session.message_count else memory.NEW
            begun = {"context": session.context + 1, "context_plan": plan, "agent_session_id": None}
            tx.change_session(session_id, **begun)
    if changed:
        tx.change_session(session_id, **changed)
        tx.append(session_id, [draft(EventType.SESSION_CHANGED, None, at, fields)])
    return state_of(tx, need_session(tx, session_id))
