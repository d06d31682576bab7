"""Cuts off the end of a history and restores it: what undo, retry, rollback and redo share.

A cut marks messages and turns and rewrites nothing. Its event names what was cut, so that a redo can find it.
Each cut or restore starts a new context, in which the agent's memory is that of the last remaining turn.
The cost does not depend on the length of the history, and hardly on how much is cut: the rows of a long cut
are marked afterwards. A long restore is prepared a slice at a time before it is recorded here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from clawdforge.core.models.events import draft
from clawdforge.core.models.rows import SessionRow
from clawdforge.core.ports import Tx, View
from clawdforge.core.rules import memory
from clawdforge.core.rules.activity import note_activity
from clawdforge.core.rules.turns import need_session
from clawdforge.wire.base import Json, Micros
from clawdforge.wire.errors import NothingToRedo
from clawdforge.wire.event import EventType

MAX_REDO = 1000


@dataclass(frozen=True, slots=True)
class HistoryChange:
    """The messages and turns that were cut or restored."""

    messages: tuple[int, ...]
    turns: tuple[int, ...]
    session: SessionRow


@dataclass(frozen=True, slots=True)
class FileTrees:
    """The workspace's tree before a cut or restore, and the tree that it gets."""

    before: str
    after: str

    def fields(self) -> Json:
        return {"before": self.before, "after": self.after}


def cut_from(
    tx: Tx, session_id: str, seq: int, at: Micros, *, why: str, files: FileTrees | None = None
) -> HistoryChange:
    """Cut every visible message from this seq on, with their turns."""
    seqs, turns = tx.numbers_from(session_id, seq)
    tx.hide_messages(session_id, seqs, turns)
    return _record_cut(tx, session_id, seqs, turns, at, why=why, files=files, before=seq)


def cut_turn(tx: Tx, session_id: str, turn_index: int, at: Micros, *, why: str = "rollback") -> HistoryChange:
    """Cut one ended turn, with or without messages. Its first event names its first message."""
    turn = tx.turn(session_id, turn_index)
    first = _read_event(tx, session_id, turn.first_seq).get("message") if turn and turn.first_seq else None
    rows = tx.messages_from(session_id, first) if isinstance(first, int) else []
    mine = [row.seq for row in rows if row.turn == turn_index]
    tx.change_messages(session_id, mine, cut=True)
    tx.change_turn(session_id, turn_index, cut=True)
    return _record_cut(tx, session_id, mine, [turn_index], at, why=why, files=None)


def last_cut(view: View, session: SessionRow) -> Json:
    """The event of the newest cut that can be redone."""
    if not session.redo:
        raise NothingToRedo
    return _read_event(view, session.session_id, session.redo[-1])


def restore_last(tx: Tx, session_id: str, at: Micros, *, files: FileTrees | None = None) -> HistoryChange:
    """Restore what the newest cut took."""
    session = need_session(tx, session_id)
    cut = last_cut(tx, session)
    messages, turns = tuple(cut["messages"]), tuple(cut["turns"])
    tx.show_messages(session_id, messages, turns)
    fields: Json = {
        "messages": list(messages),
        "turns": list(turns),
        "cut": session.redo[-1],
        "context": session.context + 1,
    }
    if files is not None:
        fields["files"] = files.fields()
    tx.append(session_id, [draft(EventType.HISTORY_RESTORED, None, at, fields)])
    _start_context(tx, session_id, redo=session.redo[:-1], files=files)
    return HistoryChange(messages, turns, need_session(tx, session_id))


def _record_cut(
    tx: Tx,
    session_id: str,
    seqs: Sequence[int],
    turns: Sequence[int],
    at: Micros,
    *,
    why: str,
    files: FileTrees | None,
    before: int | None = None,
) -> HistoryChange:
    """With `before`, nothing is left from that message on: what was cut need not be looked through."""
    session = need_session(tx, session_id)
    fields: Json = {"messages": list(seqs), "turns": list(turns), "why": why, "context": session.context + 1}
    if files is not None:
        fields["files"] = files.fields()
    head = tx.append(session_id, [draft(EventType.HISTORY_CUT, None, at, fields)])
    _start_context(tx, session_id, redo=(*session.redo[-MAX_REDO:], head), files=files, before=before)
    return HistoryChange(tuple(seqs), tuple(turns), need_session(tx, session_id))


def _start_context(
    tx: Tx, session_id: str, *, redo: tuple[int, ...], files: FileTrees | None, before: int | None = None
) -> None:
    """Plan for the agent to get its home as of the last remaining turn, or an empty one if there is none."""
    session = need_session(tx, session_id)
    tx.change_session(
        session_id,
        context=session.context + 1,
        context_plan=memory.plan_restore(tx.last_spoken_turn(session_id, before=before)),
        files_plan=files.after if files else session.files_plan,
        redo=redo,
    )
    note_activity(tx, session_id, before=before)


def _read_event(view: View, session_id: str, seq: int) -> Json:
    found = view.events(session_id, after=seq - 1, limit=1, max_bytes=1)
    event: Json = orjson.loads(found[0].data)
    return event
