"""Compaction: the next context starts from the agent's own summary; the history stays readable.

An ordinary turn asks for the summary. If none comes, that turn is cut, and the conversation is as before.
After a crash in between, the turn stays like any other.
"""

import asyncio

from clawdforge.core.clock import Clock
from clawdforge.core.models.events import draft
from clawdforge.core.models.principal import Principal
from clawdforge.core.models.rows import MessageRow, TurnRow
from clawdforge.core.ports import Store, Tx
from clawdforge.core.rules import memory
from clawdforge.core.rules.cuts import cut_turn
from clawdforge.core.rules.turns import need_session
from clawdforge.core.running.supervisor import Supervisor
from clawdforge.core.services.history import Archived, need_idle, start_context
from clawdforge.core.services.turns import TurnService, raise_for
from clawdforge.wire.base import Micros
from clawdforge.wire.errors import Conflict
from clawdforge.wire.event import EventType
from clawdforge.wire.message import Role, estimate_tokens
from clawdforge.wire.session import CompactRequest
from clawdforge.wire.turn import IfBusy, Outcome, TurnRequest

SUMMARIZE = (
    "Summarize this conversation so that it can be continued from the summary alone: what was asked, what "
    "was decided and done, which files and names matter, and what is still open. Answer with"
    " the summary only."
)


class CompactionService:
    def __init__(self, store: Store, clock: Clock, supervisor: Supervisor, turns: TurnService) -> None:
        self._store = store
        self._clock = clock
        self._supervisor = supervisor
        self._turns = turns
        self._tasks: set[asyncio.Task[Archived]] = set()

    async def compact(
        self, app: str, session_id: str, request: CompactRequest, by: Principal | None = None
    ) -> Archived:
        """Runs to its end even if the caller hangs up."""
        task = asyncio.create_task(self._compact(app, session_id, request, by))
        self._tasks.add(task)
        task.add_done_callback(self._forget_task)
        return await asyncio.shield(task)

    def _forget_task(self, task: asyncio.Task[Archived]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # marks it as seen: the caller may have gone

    async def _compact(
        self, app: str, session_id: str, request: CompactRequest, by: Principal | None
    ) -> Archived:
        asked = TurnRequest(
            prompt=request.prompt or SUMMARIZE, if_busy=IfBusy.REJECT, expected_head=request.expected_head
        )
        submitted = await self._turns.submit(app, session_id, asked, None, by)
        turn = await self._turns.wait(app, session_id, submitted.turn.turn_index)
        now = self._clock.now()
        archived = await self._store.write(app, lambda tx: _archive(tx, session_id, turn, now))
        await self._supervisor.retire_agent(app, session_id)
        if archived is None:
            raise_for(turn)
            raise Conflict("the agent gave no summary; the conversation is unchanged")
        return archived


def _archive(tx: Tx, session_id: str, turn: TurnRow, at: Micros) -> Archived | None:
    """Archive the history and store the summary. Without one, cut its turn and return None."""
    session = need_idle(tx, session_id, None)
    current = tx.turn(session_id, turn.turn_index)
    if session.last_turn != turn.turn_index or current is None or current.cut:
        raise Conflict("the conversation went on while it was summarized; compact it again")
    answer = tx.last_message(session_id, Role.ASSISTANT)
    said = answer.content.strip() if answer is not None and answer.turn == turn.turn_index else ""
    if turn.outcome is not Outcome.COMPLETED or not said:
        cut_turn(tx, session_id, turn.turn_index, at, why="compact")
        return None
    count = tx.archive_messages(session_id)
    seq = tx.add_message(
        MessageRow(
            session_id=session_id,
            role=Role.ASSISTANT,
            content=said,
            ts=at,
            turn=memory.IMPORTED_TURN,
            token_count=estimate_tokens(said),
            is_summary=True,
        )
    )
    context = start_context(tx, session_id, memory.TRANSCRIPT).context
    fields = {"messages": count, "summary": said, "message": seq, "context": context}
    tx.append(session_id, [draft(EventType.HISTORY_COMPACTED, turn.turn_index, at, fields)])
    return Archived(count, need_session(tx, session_id), said)
