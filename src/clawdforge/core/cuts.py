"""Taking the end of a history back, and giving it again: what undo, retry, rollback and redo share.

A cut marks messages and turns; it rewrites nothing. The event names what was cut, so that a redo can
find it. Each cut or restore is a new context, in which the agent's memory is that of the turn before.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from clawdforge.core import contexts
from clawdforge.core.errors import NothingToRedo
from clawdforge.core.model import MessageRow, SessionRow, draft
from clawdforge.core.ports import Tx, View
from clawdforge.core.rules import need_session
from clawdforge.wire.base import Micros
from clawdforge.wire.event import EventType

LOOK_BACK = 200


@dataclass(frozen=True, slots=True)
class Moved:
    """What a cut took or a restore gave back."""

    messages: tuple[int, ...]
    turns: tuple[int, ...]
    session: SessionRow


def cut_from(tx: Tx, session_id: str, seq: int, at: Micros, *, why: str) -> Moved:
    """Cut every visible message from this seq on, and the turns that they belong to."""
    rows = tx.messages_from(session_id, seq)
    turns = sorted({row.turn for row in rows if row.turn})
    return _cut(tx, session_id, rows, turns, at, why=why)


def cut_turn(tx: Tx, session_id: str, turn_index: int, at: Micros, *, why: str = "rollback") -> Moved:
    """Cut one ended turn, said or unsaid."""
    rows = [row for row in tx.messages_from(session_id, 1) if row.turn == turn_index]
    return _cut(tx, session_id, rows, [turn_index], at, why=why)


def restore_last(tx: Tx, session_id: str, at: Micros) -> Moved:
    """Give back what the newest cut took."""
    session = need_session(tx, session_id)
    if not session.redo:
        raise NothingToRedo
    seq = session.redo[-1]
    cut = orjson.loads(tx.events(session_id, after=seq - 1, limit=1, max_bytes=1 << 30)[0].data)
    messages, turns = tuple(cut["messages"]), tuple(cut["turns"])
    tx.change_messages(session_id, messages, cut=False)
    for turn_index in turns:
        tx.change_turn(session_id, turn_index, cut=False)
    fields = {"messages": list(messages), "turns": list(turns), "cut": seq, "context": session.context + 1}
    tx.append(session_id, [draft(EventType.HISTORY_RESTORED, None, at, fields)])
    _new_context(tx, session_id, redo=session.redo[:-1])
    return Moved(messages, turns, need_session(tx, session_id))


def boundary(view: View, session_id: str) -> int:
    """The last turn that still counts, whose home the agent is to have; 0 when there is none."""
    rows = view.last_messages(session_id, LOOK_BACK)
    return next((row.turn for row in reversed(rows) if row.turn), 0)


def _cut(
    tx: Tx, session_id: str, rows: Sequence[MessageRow], turns: Sequence[int], at: Micros, *, why: str
) -> Moved:
    session = need_session(tx, session_id)
    seqs = [row.seq for row in rows]
    tx.change_messages(session_id, seqs, cut=True)
    for turn_index in turns:
        tx.change_turn(session_id, turn_index, cut=True)
    fields = {"messages": seqs, "turns": list(turns), "why": why, "context": session.context + 1}
    head = tx.append(session_id, [draft(EventType.HISTORY_CUT, None, at, fields)])
    _new_context(tx, session_id, redo=(*session.redo, head))
    return Moved(tuple(seqs), tuple(turns), need_session(tx, session_id))


def _new_context(tx: Tx, session_id: str, *, redo: tuple[int, ...]) -> None:
    session = need_session(tx, session_id)
    turn_index = boundary(tx, session_id)
    plan = contexts.TRANSCRIPT if session.message_count else contexts.NEW
    tx.change_session(
        session_id,
        context=session.context + 1,
        context_plan=contexts.restore_plan(turn_index) if turn_index else plan,
        redo=redo,
    )
