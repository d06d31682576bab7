"""Reads a session's own events from the first to the last, and tells what must have become of them.

That is: which messages and turns there are, which of them are cut, archived or pending, and how the queue was
ordered. The words of a message stay in the event that tells of it until they are asked for.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from clawdforge.core.models.rows import MessageRow, TurnRow
from clawdforge.core.rules.memory import IMPORTED_TURN
from clawdforge.core.rules.queue import FIRST_IN_QUEUE, move_turn, put_in_order
from clawdforge.core.rules.turns import TOLD_OF_FAILURES
from clawdforge.wire.base import Json, Micros, from_iso
from clawdforge.wire.event import EventType
from clawdforge.wire.message import Role
from clawdforge.wire.turn import Outcome, TurnState

QUEUED = ("prompt", "if_busy", "retry_of", "automatic")
ENDED = ("outcome", "stop_reason", "error", "code", "usage", "stopped_by")
LATER = ("started_at", "first_seq", "ended_at", "last_seq", *ENDED)


@dataclass(slots=True)
class ToldMessage:
    """A message, the event that tells of it, and what became of it since."""

    seq: int
    kind: EventType
    event: int
    turn: int | None
    at: Micros
    archived: bool = False
    cut: bool = False
    pending: bool = False


@dataclass(slots=True)
class ToldTurn:
    """A turn as far as the log tells of it: columns of its row by their names.

    `parent` is the turn that it was said after, and `failure` what is kept of how it failed. They are not
    compared: rows of older versions have no parent, and a row keeps more of a failure than is told.
    """

    columns: dict[str, Any]
    parent: int | None = None
    failure: Json = field(default_factory=dict)

    def make_row(self, session_id: str, turn_index: int) -> TurnRow:
        named = {"session_id": session_id, "turn_index": turn_index, "parent": self.parent}
        return TurnRow(**{**named, "error_extra": self.failure, **self.columns})


class Replay:
    """Fed with what a session began with, and then with its own events, in their order."""

    def __init__(self) -> None:
        self.messages: dict[int, ToldMessage] = {}
        self.turns: dict[int, ToldTurn] = {}
        self.brought: int | None = 0  # how many events must stand before the first; None: it is not told
        self.queue_order: list[int] = []  # what somebody has put in an order and has not begun
        self.truncated: set[int] = set()  # turns in which output of the agent was dropped
        self._visible: set[int] = set()
        self._spoken: list[int] = []  # what was said in turns
        self._prompts: list[int] = []  # of the user, with a turn: one of them may be pending
        self._context = 1
        self._queued: set[int] = set()
        self._readers: dict[str, Callable[[int, Json], None]] = {
            EventType.SESSION_CREATED: self._create,
            EventType.SESSION_CHANGED: self._change,
            EventType.CONTEXT_STARTED: self._start_context,
            EventType.TURN_QUEUED: self._queue,
            EventType.TURN_CHANGED: self._change_turn,
            EventType.TURN_STARTED: self._start,
            EventType.TURN_ENDED: self._end,
            EventType.OUTPUT_TRUNCATED: self._truncate,
            EventType.MESSAGE_POSTED: self._post,
            EventType.HISTORY_CUT: self._cut,
            EventType.HISTORY_RESTORED: self._restore,
            EventType.HISTORY_CLEARED: self._clear,
            EventType.HISTORY_COMPACTED: self._compact,
        }

    def bring_message(self, event: int, row: MessageRow) -> None:
        told = ToldMessage(row.seq, EventType.MESSAGE_BROUGHT, event, row.turn, row.ts, row.archived)
        self._add(told, is_users=row.role == Role.USER and row.turn is not None)

    def bring_turn(self, row: TurnRow) -> None:
        self.turns[row.turn_index] = ToldTurn({one.name: getattr(row, one.name) for one in fields(row)})

    def feed(self, seq: int, event: Json) -> None:
        """One event. What says nothing of messages and turns is passed over."""
        read = self._readers.get(event["type"])
        if read is not None:
            read(seq, event)

    def _create(self, _seq: int, event: Json) -> None:
        came_with = "imported" in event or "forked_from" in event
        self.brought = event.get("brought") if came_with else 0

    def _change(self, _seq: int, event: Json) -> None:
        begins = bool(event["changes"].keys() & {"agent", "model"}) and not event.get("keeps_context")
        self._context += begins

    def _start_context(self, _seq: int, event: Json) -> None:
        self._context = event["number"]
        if event["turn"] in self.turns:
            self.turns[event["turn"]].columns["context"] = self._context

    def _queue(self, _seq: int, event: Json) -> None:
        columns: dict[str, Any] = {**dict.fromkeys(LATER), "retry_of": None, "automatic": False, "cut": False}
        columns |= {"files": tuple(event.get("files", ())), "queued_at": from_iso(event["ts"])}
        columns["limits"] = event.get("limits", {})
        columns |= {name: event[name] for name in QUEUED if name in event}
        self.turns[event["turn"]] = ToldTurn({**columns, "state": TurnState.QUEUED})
        self._queued.add(event["turn"])

    def _change_turn(self, _seq: int, event: Json) -> None:
        columns = self.turns[event["turn"]].columns
        columns["prompt"] = event.get("prompt", columns["prompt"])
        columns["files"] = tuple(event.get("files", columns["files"]))
        if "position" in event:
            waiting = ((index, self._goes_first(index)) for index in self._queued)
            order = put_in_order(waiting, self.queue_order)
            self.queue_order = move_turn(order, event["turn"], event["position"])

    def _goes_first(self, index: int) -> bool:
        columns = self.turns[index].columns
        return columns["automatic"] or columns["if_busy"] in FIRST_IN_QUEUE

    def _leave_queue(self, turn: int) -> None:
        self._queued.discard(turn)
        self.queue_order = [index for index in self.queue_order if index != turn]

    def _start(self, seq: int, event: Json) -> None:
        turn, at = event["turn"], from_iso(event["ts"])
        self._leave_queue(turn)
        self._confirm()
        self.turns[turn].parent = self._last_spoken_turn()
        told = ToldMessage(event["message"], EventType.TURN_STARTED, seq, turn, at, pending=True)
        self._add(told, is_users=True)
        columns = {"state": TurnState.RUNNING, "started_at": at, "first_seq": seq, "context": self._context}
        self.turns[turn].columns |= columns

    def _end(self, seq: int, event: Json) -> None:
        turn, at = event["turn"], from_iso(event["ts"])
        self._leave_queue(turn)
        has_begun = self.turns[turn].columns["started_at"] is not None
        if has_begun and event["outcome"] != Outcome.INTERRUPTED:
            self._confirm()
        if event["message"] is not None:
            self._add(ToldMessage(event["message"], EventType.TURN_ENDED, seq, turn, at))
        columns = {name: event[name] for name in ENDED if name in event}
        self.turns[turn].columns |= {**columns, "state": TurnState.ENDED, "ended_at": at, "last_seq": seq}
        self.turns[turn].failure = {name: event[name] for name in TOLD_OF_FAILURES if name in event}

    def _truncate(self, _seq: int, event: Json) -> None:
        self.truncated.add(event["turn"])

    def _post(self, seq: int, event: Json) -> None:
        at = from_iso(event["ts"])
        self._add(ToldMessage(event["message"], EventType.MESSAGE_POSTED, seq, None, at))

    def _cut(self, _seq: int, event: Json) -> None:
        self._mark(event, cut=True)
        self._visible.difference_update(event["messages"])

    def _restore(self, _seq: int, event: Json) -> None:
        self._mark(event, cut=False)
        self._visible.update(event["messages"])

    def _mark(self, event: Json, *, cut: bool) -> None:
        """What version 0.3 took in with an import or a fork is not told of, and passed over."""
        for seq in event["messages"]:
            if seq in self.messages:
                self.messages[seq].cut = cut
        for turn in event["turns"]:
            if turn in self.turns:
                self.turns[turn].columns["cut"] = cut
        self._context = event.get("context", self._context + 1)

    def _clear(self, _seq: int, event: Json) -> None:
        for seq in self._visible & self.messages.keys():
            self.messages[seq].archived = True
        self._visible.clear()
        self._context = event.get("context", self._context + 1)

    def _compact(self, seq: int, event: Json) -> None:
        self._clear(seq, event)
        at = from_iso(event["ts"])
        self._add(ToldMessage(event["message"], EventType.HISTORY_COMPACTED, seq, IMPORTED_TURN, at))

    def _add(self, told: ToldMessage, *, is_users: bool = False) -> None:
        self.messages[told.seq] = told
        if not told.archived:
            self._visible.add(told.seq)
        if told.turn is not None and told.turn > 0:
            self._spoken.append(told.seq)
        if is_users:
            self._prompts.append(told.seq)

    def _last_spoken_turn(self) -> int:
        """As the store's: of the newest message that is visible and belongs to a turn."""
        newest = next((seq for seq in reversed(self._spoken) if seq in self._visible), None)
        return 0 if newest is None else self.messages[newest].turn or 0

    def _confirm(self) -> None:
        """As `turns.confirm_prompt`: the newest prompt that is visible is pending no longer."""
        newest = next((seq for seq in reversed(self._prompts) if seq in self._visible), None)
        if newest is not None:
            self.messages[newest].pending = False
