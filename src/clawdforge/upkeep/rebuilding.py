"""Compares the messages and turns of a session with what its log tells, and makes anew what is not so."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from clawdforge.core.models.rows import MessageRow, TurnRow
from clawdforge.core.rules.activity import note_activity
from clawdforge.core.rules.interrupted import project_turn
from clawdforge.core.rules.replay import Replay, ToldMessage
from clawdforge.stores.sqlite.inspection import Counts, Inspection
from clawdforge.stores.sqlite.tx import SqliteTx
from clawdforge.wire.event import EventType
from clawdforge.wire.message import CALL_OUTPUT, Role, estimate_tokens
from clawdforge.wire.turn import TurnState

Row = TypeVar("Row", MessageRow, TurnRow)
PAGE: Final = 500
MANY: Final = 1 << 62
COMPARED: Final = (
    "role",
    "content",
    "turn",
    "thinking",
    "tool_calls",
    "plan",
    "is_summary",
    "archived",
    "cut",
    "pending",
    "truncated",
)
"""Of a message. Its time and its tokens are made anew only with all of it."""
NOT_TOLD: Final = frozenset({"context"})
"""Of a turn: the log tells it only as far as a new row needs it."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """Something that is not what the log tells. With neither a row nor changes, the log cannot help."""

    text: str
    key: int
    is_turn: bool
    added: MessageRow | TurnRow | None = None
    changes: dict[str, Any] | None = None
    order: tuple[int, ...] | None = None  # of the queue

    @property
    def can_be_mended(self) -> bool:
        return self.added is not None or self.changes is not None or self.order is not None


class Rebuilding:
    """One session. Its log must be whole: what is missing there would be taken away here."""

    def __init__(self, inspection: Inspection, tx: SqliteTx, session_id: str) -> None:
        self._inspection = inspection
        self._tx = tx
        self._session_id = session_id
        self.told = Replay()
        for number, row in inspection.brought(session_id):
            if isinstance(row, MessageRow):
                self.told.bring_message(number, row)
            else:
                self.told.bring_turn(row)
        for seq, event in inspection.own_events(session_id):
            self.told.feed(seq, event)

    def find_wrong_turns(self) -> Iterator[Wrong]:
        there = {turn.turn_index: turn for turn in self._tx.turns(self._session_id, limit=MANY)}
        for index, told in self.told.turns.items():
            row = there.pop(index, None)
            if row is None:
                added = told.make_row(self._session_id, index)
                yield Wrong(f"turn {index} is missing", index, True, added=added)
                continue
            known = told.columns.keys() - NOT_TOLD
            if told.columns["state"] is not TurnState.ENDED:
                known -= {"state"}  # whether it waits for a permission is not told
            changes = self._differences(row, replace(row, **told.columns), sorted(known))
            if changes:
                yield Wrong(f"turn {index} is not what the log says", index, True, changes=changes)
        if self.told.brought is not None:
            yield from (Wrong(f"turn {index} is in no event", index, True) for index in there)

    def find_wrong_order(self) -> Iterator[Wrong]:
        """Turns that were taken out may still stand in the row: they say nothing."""
        session, told = self._tx.session(self._session_id), tuple(self.told.queue_order)
        if session is None:
            return
        turns = self.told.turns
        kept = (one for one in session.queue_order if one in turns)
        if told != tuple(one for one in kept if turns[one].columns["state"] == TurnState.QUEUED):
            yield Wrong("the order of its queue is not what the log says", 0, True, order=told)

    def find_wrong_messages(self) -> Iterator[Wrong]:
        left = dict(self.told.messages)
        for show in ("all", "cut"):
            after = 0
            while page := self._tx.messages(self._session_id, after=after, limit=PAGE, show=show):
                after = page[-1].seq
                for row in page:
                    yield from self._compare(row, left.pop(row.seq, None))
        for told in left.values():
            made = self._make_message(told)
            yield Wrong(f"message {told.seq} is missing", told.seq, False, added=made)

    def _compare(self, row: MessageRow, told: ToldMessage | None) -> Iterator[Wrong]:
        if told is None:
            if self.told.brought is not None:
                yield Wrong(f"message {row.seq} is in no event", row.seq, False)
            return
        wanted = self._make_message(told) or replace(
            row, archived=told.archived, cut=told.cut, pending=told.pending
        )
        changes = self._differences(row, _without_new_outputs(row, wanted), COMPARED)
        if changes:
            yield Wrong(f"message {row.seq} is not what the log says", row.seq, False, changes=changes)

    def mend(self, wrong: Wrong) -> None:
        if isinstance(wrong.added, TurnRow):
            self._tx.add_turn(wrong.added)
        elif wrong.added is not None:
            self._tx.add_message(wrong.added)
        elif wrong.order is not None:
            self._tx.change_session(self._session_id, queue_order=wrong.order)
        elif wrong.changes and wrong.is_turn:
            self._tx.change_turn(self._session_id, wrong.key, **wrong.changes)
        elif wrong.changes:
            self._tx.change_messages(self._session_id, [wrong.key], **wrong.changes)
        note_activity(self._tx, self._session_id)

    def count(self) -> Counts:
        """What the session should count. What an older version brought is counted as it lies there."""
        visible, last = self._inspection.count_messages(self._session_id)
        turns = self._tx.turns(self._session_id, limit=MANY)
        started = sum(turn.started_at is not None for turn in turns)
        return Counts(visible, last, started, max((turn.turn_index for turn in turns), default=0))

    def _make_message(self, told: ToldMessage) -> MessageRow | None:
        """The message with all its words; None if the log does not have them, as in version 0.3."""
        made = self._read_words(told)
        if made is None:
            return None
        return replace(
            made, seq=told.seq, archived=told.archived, cut=told.cut, pending=told.pending, turn=told.turn
        )

    def _read_words(self, told: ToldMessage) -> MessageRow | None:
        if told.kind is EventType.MESSAGE_BROUGHT:
            return self._inspection.brought_message(self._session_id, told.event)
        if told.kind is EventType.TURN_ENDED:
            return self._read_answer(told)
        if told.kind is EventType.TURN_STARTED and told.turn is not None:
            return self._said(told, self.told.turns[told.turn].columns["prompt"])
        event = self._inspection.event(self._session_id, told.event)
        if told.kind is EventType.HISTORY_COMPACTED:
            return replace(self._said(told, event["summary"]), role=Role.ASSISTANT, is_summary=True)
        return self._said(told, event["content"]) if "content" in event else None

    def _read_answer(self, told: ToldMessage) -> MessageRow | None:
        turn = self._tx.turn(self._session_id, told.turn or 0)
        if turn is None or turn.first_seq is None:
            return None
        made = project_turn(self._tx, turn).make_message(self._session_id, turn.turn_index, told.at)
        return made and replace(made, truncated=made.truncated or turn.turn_index in self.told.truncated)

    def _said(self, told: ToldMessage, text: str) -> MessageRow:
        return MessageRow(
            session_id=self._session_id,
            role=Role.USER,
            content=text,
            ts=told.at,
            token_count=estimate_tokens(text),
        )

    def _differences(self, row: Row, wanted: Row, names: Iterable[str]) -> dict[str, Any]:
        have, want = self._inspection.column_values(row), self._inspection.column_values(wanted)
        return {name: getattr(wanted, name) for name in names if have[name] != want[name]}


def _without_new_outputs(row: MessageRow, wanted: MessageRow) -> MessageRow:
    """Earlier versions kept no output of a tool that was only shown to people: its absence is no damage."""
    if len(row.tool_calls) != len(wanted.tool_calls):
        return wanted
    calls = [
        want if CALL_OUTPUT in have else {key: want[key] for key in want if key != CALL_OUTPUT}
        for have, want in zip(row.tool_calls, wanted.tool_calls, strict=True)
    ]
    return replace(wanted, tool_calls=tuple(calls))
