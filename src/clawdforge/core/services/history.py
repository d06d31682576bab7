"""Changes to a history: undo, redo, retry, clear. Each is an event and rewrites nothing.

They are refused while a turn runs or is queued, since its messages are not known yet. With `files` the
workspace is changed too: turns of everybody who works there wait meanwhile, and its present state is recorded
for a redo.
"""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from clawdforge.core.clock import Clock
from clawdforge.core.models.events import draft
from clawdforge.core.models.principal import Principal
from clawdforge.core.models.rows import Hit, MessageRow, SessionRow, TurnRow
from clawdforge.core.pacing.long_reads import read_rows
from clawdforge.core.ports import Store, Tx, View
from clawdforge.core.rules import memory
from clawdforge.core.rules.admission import admit_turn
from clawdforge.core.rules.branches import Branches, read_branches
from clawdforge.core.rules.cuts import FileTrees, HistoryChange, cut_from, last_cut, restore_last
from clawdforge.core.rules.purses import find_token
from clawdforge.core.rules.quotas import NO_QUOTAS, Quotas
from clawdforge.core.rules.traces import find_callers_trace
from clawdforge.core.rules.turns import need_open, need_session, queue_turn
from clawdforge.core.running.folder_holds import FolderHolds
from clawdforge.core.running.long_writes import LongWrite
from clawdforge.core.running.questions import NoAnswer
from clawdforge.core.running.supervisor import Supervisor
from clawdforge.core.running.undone_files import UndoneFiles
from clawdforge.core.services.finishing import Finisher
from clawdforge.core.unbroken import Unbroken
from clawdforge.wire.base import Micros
from clawdforge.wire.errors import (
    Conflict,
    ForgeAPIError,
    NoPreviousMessage,
    NothingToUndo,
    SessionBusy,
    StoreUnavailable,
)
from clawdforge.wire.event import EventType
from clawdforge.wire.session import Activity, Guarded, RedoRequest, RetryRequest, UndoRequest
from clawdforge.wire.turn import TurnState

T = TypeVar("T")
Work: TypeAlias = Callable[[Tx, int | None, FileTrees | None], T]
PREVIEW_CHARS = 120
PUT_BACK_LATER: Final = (
    "the history was changed; the server that has the files gave no answer, so they are put back before the"
    " next turn; do not undo again"
)


@dataclass(frozen=True, slots=True)
class Cut:
    """What undo and retry cut; `queued_turn` is the turn that a retry has queued."""

    moved: HistoryChange
    last_user_text: str
    queued_turn: TurnRow | None = None

    @property
    def preview(self) -> str:
        return self.last_user_text[:PREVIEW_CHARS]


@dataclass(frozen=True, slots=True)
class Archived:
    """What clear and compact archived."""

    count: int
    session: SessionRow
    summary: str | None = None


class HistoryService:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        supervisor: Supervisor,
        undone: UndoneFiles,
        folders: FolderHolds,
        finisher: Finisher,
        quotas: Quotas = NO_QUOTAS,
    ) -> None:
        self._store = store
        self._clock = clock
        self._supervisor = supervisor
        self._undone = undone
        self._folders = folders
        self._finisher = finisher
        self._quotas = quotas
        self._unbroken = Unbroken()

    async def undo(self, app: str, session_id: str, request: UndoRequest) -> Cut:
        """Cut the last exchanges, in the transcript and in the agent's memory."""
        now = self._clock.now()

        def work(tx: Tx, head: int | None, files: FileTrees | None) -> Cut:
            need_idle(tx, session_id, head)
            first, last = _last_prompts(tx, session_id, request.turns, NothingToUndo)
            return Cut(cut_from(tx, session_id, first.seq, now, why="undo", files=files), last.content)

        def find_target(view: View) -> int:
            first, _ = _last_prompts(view, session_id, request.turns, NothingToUndo)
            return view.last_spoken_turn(session_id, before=first.seq)

        return await self._change(app, session_id, request, work, find_target if request.files else None)

    async def retry(
        self, app: str, session_id: str, request: RetryRequest, by: Principal | None = None
    ) -> Cut:
        """Cut the last exchange and return its prompt; with `run`, queue the prompt again.

        A caller that hangs up changes nothing: what it has queued runs.
        """
        return await self._unbroken.run(self._retry(app, session_id, request, by))

    async def _retry(self, app: str, session_id: str, request: RetryRequest, by: Principal | None) -> Cut:
        now = self._clock.now()
        may_be_queued = False

        def work(tx: Tx, head: int | None, files: FileTrees | None) -> Cut:
            nonlocal may_be_queued
            need_idle(tx, session_id, head)
            last, _ = _last_prompts(tx, session_id, 1, NoPreviousMessage)
            moved = cut_from(tx, session_id, last.seq, now, why="retry", files=files)
            if not (request.run or request.prompt):
                return Cut(moved, last.content)
            text = request.prompt or last.content
            queued_turn = _queue_again(tx, last, text, by, now, self._quotas)
            may_be_queued = True
            return Cut(moved, last.content, queued_turn)

        def find_target(view: View) -> int:
            last, _ = _last_prompts(view, session_id, 1, NoPreviousMessage)
            return view.last_spoken_turn(session_id, before=last.seq)

        try:
            return await self._change(app, session_id, request, work, find_target if request.files else None)
        finally:
            # Also when it failed: the commit may be on disk all the same, and nobody else would run the turn.
            if may_be_queued:
                self._supervisor.wake(app, session_id)

    async def redo(self, app: str, session_id: str, request: RedoRequest) -> HistoryChange:
        """Restore what the last undo or retry cut, as long as there has been no message since."""
        now = self._clock.now()

        def work(tx: Tx, head: int | None, files: FileTrees | None) -> HistoryChange:
            need_idle(tx, session_id, head)
            return restore_last(tx, session_id, now, files=files)

        def find_target(view: View) -> str | None:
            taken = last_cut(view, need_session(view, session_id)).get("files")
            return str(taken["before"]) if isinstance(taken, dict) else None

        target = find_target if request.files else None
        if await self._store.read(app, lambda view: _is_short(view, session_id, request)):
            return await self._change(app, session_id, request, work, target)
        return await self._change(app, session_id, request, work, target, self._prepare_redo)

    async def clear(self, app: str, session_id: str, request: Guarded) -> Archived:
        """Archive all messages and start a new context in the same session."""
        now = self._clock.now()

        def work(tx: Tx) -> Archived:
            need_idle(tx, session_id, request.expected_head)
            count = tx.archive_messages(session_id)
            session = start_context(tx, session_id, memory.NEW)
            fields = {"messages": count, "context": session.context}
            tx.append(session_id, [draft(EventType.HISTORY_CLEARED, None, now, fields)])
            return Archived(count, need_session(tx, session_id))

        cleared = await self._store.write(app, work)
        await self._supervisor.retire_agent(app, session_id)
        return cleared

    async def tree(self, app: str, session_id: str, after: int, limit: int) -> Branches:
        return await read_rows(
            self._store, app, limit, lambda view: read_branches(view, session_id, after, limit)
        )

    async def search(
        self, app: str, q: str, limit: int, cursor: str | None, session_id: str | None
    ) -> tuple[list[Hit], str | None]:
        """Full-text search over the app's visible messages, newest first."""

        def work(view: View) -> tuple[list[Hit], str | None]:
            if session_id is not None:
                need_session(view, session_id)
            return view.search(q, limit=limit, cursor=cursor, session_id=session_id)

        return await self._store.read_long(app, work)  # there may be many hits to sort for a few

    async def _change(
        self,
        app: str,
        session_id: str,
        request: Guarded,
        work: Work[T],
        find_target: Callable[[View], int | str | None] | None,
        prepare: Callable[[str, str], Awaitable[None]] | None = None,
    ) -> T:
        """Change the history, and with `find_target` the workspace too.

        `find_target` returns the turn, or the tree, to which the workspace goes back. `prepare` is done
        before, with turns waiting, for a change that is too long for one transaction.
        """
        if find_target is None and prepare is None:
            result = await self._write(app, session_id, lambda tx: work(tx, request.expected_head, None))
            await self._supervisor.retire_agent(app, session_id)
            return result
        changing = self._change_held(app, session_id, request, work, find_target, prepare)
        if find_target is None:
            return await changing
        # A caller that hangs up must not let anybody in while files are put back, perhaps at another node.
        return await self._unbroken.run(changing)

    async def _change_held(
        self,
        app: str,
        session_id: str,
        request: Guarded,
        work: Work[T],
        find_target: Callable[[View], int | str | None] | None,
        prepare: Callable[[str, str], Awaitable[None]] | None,
    ) -> T:
        found = await self._store.read(app, lambda view: need_idle(view, session_id, request.expected_head))
        held = self._supervisor.hold(app, session_id) if find_target is None else self._folders.hold(found)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(held)
            session = await self._store.read(
                app, lambda view: need_idle(view, session_id, request.expected_head)
            )
            if prepare is not None:  # the finisher is held by one at a time, who alone lets go of it
                stack.enter_context(self._finisher.hold(session_id))
                await prepare(app, session_id)
            target = None if find_target is None else await self._store.read(app, find_target)
            if target is None:
                return await self._write(app, session_id, lambda tx: work(tx, session.head, None))
            return await self._change_files(app, session, target, work)

    async def _change_files(self, app: str, session: SessionRow, target: int | str, work: Work[T]) -> T:
        session_id = session.session_id

        def clear_plan(tx: Tx) -> None:
            tx.change_session(session_id, files_plan=None)

        node = await self._undone.find_node(session)
        files = await self._undone.look(session, node, target)
        result = await self._write(app, session_id, lambda tx: work(tx, session.head, files))
        try:
            await self._undone.put_back(session, node, files.after)
        except (NoAnswer, StoreUnavailable) as error:
            # It may be at work still. The plan stays, and the next turn finishes what it says.
            raise Conflict(PUT_BACK_LATER) from error
        except ForgeAPIError:
            # The caller is told, and may go on by hand: no later turn may undo that.
            await self._store.write(app, clear_plan)
            raise
        # A server that ends before this leaves the plan, and the next turn finishes what it says.
        await self._store.write(app, clear_plan)
        return result

    async def _write(self, app: str, session_id: str, work: Callable[[Tx], T]) -> T:
        """Write, after an earlier long change of this history if there was one that is not finished yet."""
        try:
            return await self._store.write(app, work)
        except SessionBusy:
            if await self._store.read(app, lambda view: view.has_finished_changes(session_id)):
                raise
        await self._finisher.finish(app, session_id)
        return await self._store.write(app, work)

    async def _prepare_redo(self, app: str, session_id: str) -> None:
        """Restore the rows of a long cut while nobody sees them yet."""
        cut = await self._store.read(app, lambda view: last_cut(view, need_session(view, session_id)))
        messages, turns, done = cut["messages"], cut["turns"], 0
        restoring = LongWrite(self._store, app)
        while done < len(messages) + len(turns):
            done = await restoring.step(
                lambda tx, done=done: tx.restore_slice(session_id, messages, turns, done)  # type: ignore[misc]
            )


def need_idle(view: View, session_id: str, expected_head: int | None) -> SessionRow:
    """The session, if it is open and no turn runs or is queued; else raise."""
    session = need_open(view, session_id, expected_head)
    active = view.active_turn(session_id)
    if active is not None or view.count_queued(session_id):
        raise SessionBusy(active_turn=active.turn_index if active else None)
    return session


def start_context(tx: Tx, session_id: str, plan: str) -> SessionRow:
    """Start a new context, of a session without work. Earlier cuts can no longer be redone."""
    session = need_session(tx, session_id)
    tx.change_session(
        session_id,
        context=session.context + 1,
        context_plan=plan,
        agent_session_id=None,
        redo=(),
        activity=Activity.IDLE,
        last_outcome=None,
    )
    return need_session(tx, session_id)


def _last_prompts(
    view: View, session_id: str, count: int, missing: type[ForgeAPIError]
) -> tuple[MessageRow, MessageRow]:
    found = view.last_prompts(session_id, count)
    if found is None:
        raise missing
    return found


def _is_short(view: View, session_id: str, request: Guarded) -> bool:
    """Whether a redo fits into one transaction."""
    session = need_idle(view, session_id, request.expected_head)
    return view.fits_at_once(session_id, last_cut(view, session)["messages"])


def _queue_again(
    tx: Tx, last: MessageRow, text: str, by: Principal | None, at: Micros, quotas: Quotas
) -> TurnRow:
    session_id = last.session_id
    admit_turn(tx, need_session(tx, session_id), quotas)
    before = tx.turn(session_id, last.turn) if last.turn else None
    row = TurnRow(
        session_id=session_id,
        turn_index=0,
        state=TurnState.QUEUED,
        prompt=text,
        files=before.files if before else (),
        queued_at=at,
        timeout_secs=before.timeout_secs if before else None,
        limits=before.limits if before else {},
        retry_of=last.turn or None,
        token_id=find_token(tx, by),
        traceparent=find_callers_trace(tx, by),
    )
    return queue_turn(tx, need_session(tx, session_id), row, at)
