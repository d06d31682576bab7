"""History that can be taken back: undo, redo, retry, clear, compact. Each is an event and rewrites nothing.

While a turn runs or waits in the queue these are refused: what a running turn will say is not known yet.
"""

from dataclasses import dataclass
from typing import TypeVar

from clawdforge.core import contexts
from clawdforge.core.cuts import Moved, cut_from, restore_last
from clawdforge.core.errors import Conflict, NoPreviousMessage, NothingToUndo, SessionBusy
from clawdforge.core.model import Clock, MessageRow, SessionRow, TurnRow, draft
from clawdforge.core.ports import Store, Tx
from clawdforge.core.rules import need_open, need_session, queue_turn
from clawdforge.core.supervisor import Supervisor
from clawdforge.core.turns import TurnService, raise_for
from clawdforge.wire.base import Micros
from clawdforge.wire.event import EventType
from clawdforge.wire.message import Role, estimate_tokens
from clawdforge.wire.session import CompactRequest, Guarded, RedoRequest, RetryRequest, UndoRequest
from clawdforge.wire.turn import IfBusy, TurnRequest, TurnState

T = TypeVar("T")
SUMMARIZE = (
    "Summarize this conversation so that it can be continued from the summary alone: what was asked, what "
    "was decided and done, which files and names matter, and what is still open. Answer with the summary only."
)


@dataclass(frozen=True, slots=True)
class Cut:
    """What undo and retry took back; `again` is the turn that a retry has queued."""

    moved: Moved
    last_user_text: str
    again: TurnRow | None = None


@dataclass(frozen=True, slots=True)
class Archived:
    """What clear and compact put away."""

    count: int
    session: SessionRow
    summary: str | None = None


class HistoryService:
    def __init__(self, store: Store, clock: Clock, supervisor: Supervisor, turns: TurnService) -> None:
        self._store = store
        self._clock = clock
        self._supervisor = supervisor
        self._turns = turns

    async def undo(self, app: str, session_id: str, request: UndoRequest) -> Cut:
        """Take the last exchanges back, in the transcript and in the agent's memory."""
        now = self._clock.now()

        def work(tx: Tx) -> Cut:
            at_rest(tx, session_id, request.expected_head)
            first, last = _prompts(tx, session_id, request.turns)
            if first is None or last is None:
                raise NothingToUndo
            return Cut(cut_from(tx, session_id, first.seq, now, why="undo"), last.content)

        return await self._changed(session_id, await self._store.write(app, work))

    async def retry(self, app: str, session_id: str, request: RetryRequest) -> Cut:
        """Take the last exchange back and hand its text out; with `run` it is queued again at once."""
        now = self._clock.now()

        def work(tx: Tx) -> Cut:
            at_rest(tx, session_id, request.expected_head)
            last, _ = _prompts(tx, session_id, 1)
            if last is None:
                raise NoPreviousMessage
            moved = cut_from(tx, session_id, last.seq, now, why="retry")
            text = request.prompt or last.content
            again = _again(tx, session_id, last, text, now) if request.run or request.prompt else None
            return Cut(moved, last.content, again)

        cut = await self._changed(session_id, await self._store.write(app, work))
        if cut.again is not None:
            self._supervisor.wake(app, session_id)
        return cut

    async def redo(self, app: str, session_id: str, request: RedoRequest) -> Moved:
        """Give back what the last undo or retry took, as long as nothing has been said since."""
        now = self._clock.now()

        def work(tx: Tx) -> Moved:
            at_rest(tx, session_id, request.expected_head)
            return restore_last(tx, session_id, now)

        return await self._changed(session_id, await self._store.write(app, work))

    async def clear(self, app: str, session_id: str, request: Guarded) -> Archived:
        """Archive what was said and begin a new context in the same session."""
        now = self._clock.now()

        def work(tx: Tx) -> Archived:
            at_rest(tx, session_id, request.expected_head)
            count = _archive(tx, session_id)
            session = _renew(tx, session_id, contexts.NEW)
            fields = {"archived": count, "context": session.context}
            tx.append(session_id, [draft(EventType.HISTORY_CLEARED, None, now, fields)])
            return Archived(count, need_session(tx, session_id))

        return await self._changed(session_id, await self._store.write(app, work))

    async def compact(self, app: str, session_id: str, request: CompactRequest) -> Archived:
        """The agent's own summary becomes all that the next context knows; the history stays readable."""
        asked = TurnRequest(
            prompt=request.prompt or SUMMARIZE, if_busy=IfBusy.REJECT, expected_head=request.expected_head
        )
        submitted = await self._turns.submit(app, session_id, asked, None)
        turn = await self._turns.wait(app, session_id, submitted.turn.turn_index)
        raise_for(turn)
        now = self._clock.now()

        def work(tx: Tx) -> Archived:
            session = at_rest(tx, session_id, turn.last_seq)
            answer = tx.last_message(session_id, Role.ASSISTANT)
            if answer is None or answer.turn != turn.turn_index or not answer.content.strip():
                raise Conflict("the agent gave no summary; the conversation is as it was")
            count = _archive(tx, session_id)
            seq = tx.add_message(_summary(session_id, answer.content, now))
            session = _renew(tx, session_id, contexts.TRANSCRIPT)
            fields = {"archived": count, "summary": seq, "turn": turn.turn_index, "context": session.context}
            tx.append(session_id, [draft(EventType.HISTORY_COMPACTED, None, now, fields)])
            return Archived(count, need_session(tx, session_id), answer.content)

        return await self._changed(session_id, await self._store.write(app, work))

    async def _changed(self, session_id: str, result: T) -> T:
        """An agent that still remembers what was taken back is of no more use."""
        await self._supervisor.shut(session_id)
        return result


def at_rest(tx: Tx, session_id: str, expected_head: int | None) -> SessionRow:
    """The session when it is open and nothing runs or waits in it."""
    session = need_open(tx, session_id, expected_head)
    active = tx.active_turn(session_id)
    if active is not None or tx.queued_turns(session_id):
        raise SessionBusy(active_turn=active.turn_index if active else None)
    return session


def _prompts(tx: Tx, session_id: str, count: int) -> tuple[MessageRow | None, MessageRow | None]:
    """The earliest and the latest of the last `count` things that the user said."""
    last = earliest = tx.last_message(session_id, Role.USER)
    found = 1
    while earliest is not None and found < count:
        before = tx.last_message(session_id, Role.USER, before=earliest.seq)
        if before is None:
            break
        earliest, found = before, found + 1
    return earliest, last


def _again(tx: Tx, session_id: str, last: MessageRow, text: str, at: Micros) -> TurnRow:
    before = tx.turn(session_id, last.turn) if last.turn else None
    row = TurnRow(
        session_id=session_id,
        turn_index=0,
        state=TurnState.QUEUED,
        prompt=text,
        files=before.files if before else (),
        queued_at=at,
        timeout_secs=before.timeout_secs if before else None,
        retry_of=last.turn or None,
    )
    return queue_turn(tx, need_session(tx, session_id), row, at)


def _archive(tx: Tx, session_id: str) -> int:
    rows = tx.messages_from(session_id, 0)
    tx.change_messages(session_id, [row.seq for row in rows], archived=True)
    return len(rows)


def _renew(tx: Tx, session_id: str, plan: str) -> SessionRow:
    session = need_session(tx, session_id)
    fresh = {"context": session.context + 1, "context_plan": plan, "agent_session_id": None, "redo": ()}
    tx.change_session(session_id, **fresh)
    return need_session(tx, session_id)


def _summary(session_id: str, text: str, at: Micros) -> MessageRow:
    return MessageRow(
        session_id=session_id,
        role=Role.ASSISTANT,
        content=text,
        ts=at,
        turn=contexts.IMPORTED_TURN,
        token_count=estimate_tokens(text),
        is_summary=True,
    )
