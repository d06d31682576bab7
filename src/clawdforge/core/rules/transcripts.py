"""A transcript as people read it: what was said, and how a turn ended that did not end well."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from clawdforge.core.models.rows import MessageRow, SessionRow, TurnRow
from clawdforge.core.ports import View
from clawdforge.core.rules.queue import find_next
from clawdforge.core.rules.sessions import SessionState, state_of
from clawdforge.core.rules.turns import find_last_prompt, need_session
from clawdforge.wire.message import Role
from clawdforge.wire.turn import TurnState

LOOKED_AT: Final = 1000
"""Endings of so many turns are shown, or of up to twice as many: numbers shall not shift with every turn."""


@dataclass(frozen=True, slots=True)
class Ending:
    """A turn that failed, ran out of time or was cut off; it stands after the message of that seq."""

    after: int
    turn: TurnRow


Entry: TypeAlias = MessageRow | Ending


@dataclass(frozen=True, slots=True)
class Transcript:
    """A session, its state, and a part of what was said in it, the first of which is number `first`.

    `pending` is a prompt whose answer is not complete: while its turn waits, runs, or was cut off and no
    other has begun. Until then neither it nor the part of an answer that it got counts as said: `unsaid` is
    how many messages that are. `endings` are all that stand among what was said.
    """

    state: SessionState
    pending: MessageRow | None
    entries: Sequence[Entry] = ()
    unsaid: int = 0
    endings: Sequence[Ending] = ()
    first: int = 0

    @property
    def messages(self) -> Sequence[MessageRow]:
        return [entry for entry in self.entries if isinstance(entry, MessageRow)]

    @property
    def count(self) -> int:
        """How many entries there are in all."""
        return self.state.row.message_count - self.unsaid + len(self.endings)

    def count_messages(self, entries: int) -> int:
        """How many messages come before an entry; before an ending, those before its turn."""
        at = self.entries[entries] if entries < len(self.entries) else None
        turn = at.turn.turn_index if isinstance(at, Ending) else None
        found = self.messages
        if turn is not None:
            return next((index for index, row in enumerate(found) if row.turn == turn), len(found))
        return sum(isinstance(entry, MessageRow) for entry in self.entries[:entries])


def show(view: View, session_id: str, *, with_cut_off: bool = False) -> Transcript:
    return describe(view, need_session(view, session_id), with_cut_off=with_cut_off, with_endings=True)


def describe(
    view: View, row: SessionRow, *, with_cut_off: bool = False, with_endings: bool = False
) -> Transcript:
    """A session without its entries. A prompt that was cut off counts as said if `with_cut_off`."""
    session_id, last = row.session_id, find_last_prompt(view, row.session_id)
    if last is not None and last.pending and with_cut_off and _is_over(view, last):
        last = replace(last, pending=False)
    endings = _find_endings(view, row) if with_endings else []
    if last is not None and last.pending:
        unsaid = [
            message for message in view.messages_from(session_id, last.seq) if message.turn == last.turn
        ]
        said = [ending for ending in endings if ending.turn.turn_index != last.turn]
        return Transcript(state_of(view, row), last, unsaid=len(unsaid), endings=said)
    waits = find_next(view, row)
    pending = None if waits is None else _queued_message(waits)
    return Transcript(state_of(view, row), pending, endings=endings)


def read_newest(view: View, session_id: str, limit: int, *, with_cut_off: bool = False) -> Transcript:
    found = show(view, session_id, with_cut_off=with_cut_off)
    rows = view.last_messages(session_id, limit + found.unsaid) if limit else []
    entries = interleave(found, rows)[-limit:] if limit else []
    return replace(found, entries=entries, first=found.count - len(entries))


def read_before(
    view: View, session_id: str, before: int, limit: int, *, with_cut_off: bool = False
) -> Transcript:
    """The `limit` entries before number `before`."""
    found = show(view, session_id, with_cut_off=with_cut_off)
    stop = min(before, found.count)
    start = max(0, stop - limit)
    lowest = max(0, start - len(found.endings))  # so many messages come before the first entry, or more
    seq = view.seq_at(session_id, lowest)
    if seq is None or start >= stop:
        return replace(found, first=start)
    rows = view.messages(session_id, after=seq - 1, limit=stop - lowest + found.unsaid)
    first = lowest + sum(ending.after < seq for ending in found.endings)
    return replace(found, entries=interleave(found, rows)[start - first : stop - first], first=start)


def interleave(found: Transcript, rows: Sequence[MessageRow]) -> list[Entry]:
    """Messages that were said, each followed by the ending that stands after it."""
    unsaid = found.pending.turn if found.unsaid and found.pending is not None else None
    after = {ending.after: ending for ending in found.endings}
    entries: list[Entry] = []
    for row in rows:
        if unsaid is not None and row.turn == unsaid:
            continue
        entries.append(row)
        if row.seq in after:
            entries.append(after[row.seq])
    return entries


def _find_endings(view: View, row: SessionRow) -> list[Ending]:
    oldest = max(0, row.last_turn // LOOKED_AT - 1) * LOOKED_AT
    found = view.failed_turns(row.session_id, after=oldest) if row.message_count else []
    return [Ending(seq, turn) for seq, turn in found]


def _is_over(view: View, prompt: MessageRow) -> bool:
    turn = view.turn(prompt.session_id, prompt.turn) if prompt.turn is not None else None
    return turn is not None and turn.state is TurnState.ENDED


def _queued_message(turn: TurnRow) -> MessageRow:
    """The message that a queued prompt becomes when its turn starts."""
    return MessageRow(
        session_id=turn.session_id,
        role=Role.USER,
        content=turn.prompt,
        ts=turn.queued_at,
        turn=turn.turn_index,
        pending=True,
    )
