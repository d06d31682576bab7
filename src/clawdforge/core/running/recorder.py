"""One turn: what the agent sends becomes events, durable before anybody sees them.

Messages are collected while a commit runs and written as the next batch; no timer holds them back.
When the store fails, reading from the agent pauses until it heals, for a bounded time.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

from clawdforge.core.clock import Clock
from clawdforge.core.models.agents import Ask, Used, Verdict
from clawdforge.core.models.events import AgentEvent, Draft, Words, draft, draft_of, drafts_of, first_of
from clawdforge.core.models.rows import TurnRow
from clawdforge.core.ports import LeaseLost, Store, Tx
from clawdforge.core.rules.cuts import cut_turn
from clawdforge.core.rules.interrupted import apply_policy
from clawdforge.core.rules.leases import check_lease
from clawdforge.core.rules.limits import NO_ROOM
from clawdforge.core.rules.placement import note_empty
from clawdforge.core.rules.projection import Projection
from clawdforge.core.rules.purses import Question, allow, extend
from clawdforge.core.rules.quotas import NO_QUOTAS, Quotas
from clawdforge.core.rules.turns import Ending, StartedTurn, finish, need_session
from clawdforge.core.running.bell import Bell
from clawdforge.core.running.permissions import PermissionService
from clawdforge.core.running.progress import Progress
from clawdforge.core.running.stops import LimitWatch
from clawdforge.core.running.when_needed import WhenNeeded
from clawdforge.wire.admin import WaitsFor
from clawdforge.wire.base import Json
from clawdforge.wire.errors import AgentError, StoreUnavailable
from clawdforge.wire.event import EventType
from clawdforge.wire.session import PermissionMode
from clawdforge.wire.turn import OPTION_ID, Outcome, TurnState

T = TypeVar("T")
HIGH_WATER = 1 << 17  # a thousand short events: four times as many kept the writer for 52 ms of CPU
RETRY_SECS = 0.2
QUESTION: Final = "budget"
NOT_NOW: Final = {OPTION_ID: "leave", "name": "Leave it", "kind": "reject_once"}
OVERDRAFT = 1 << 19
"""By so much the event that fills an app's share may go beyond it; a larger one is dropped."""
LAST_WORDS = 1 << 16
PLENTY = 1 << 28
ROOM_SECS: Final = 1.0
"""Where there is plenty of room, it is looked up once a second: it takes as long as to write a few words."""


class TurnRecorder:
    """The sink of a running turn."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        permissions: PermissionService,
        app: str,
        started: StartedTurn,
        progress: Progress,
        watch: LimitWatch,
        quotas: Quotas = NO_QUOTAS,
    ) -> None:
        self.app = app
        self._watch = watch
        self._quotas = quotas
        self._room_left: int | None = None  # what the app may still store, as the last look found it
        self._room_until = 0.0  # so long that look holds, as long as there is plenty
        self._room_known = started.room
        self._is_full = self._has_dropped = False
        self._progress = progress
        self.session_id = started.session.session_id
        self.turn_index = started.turn.turn_index
        self._store = store
        self._clock = clock
        self._permissions = permissions
        self._mode = started.session.permission_mode
        self._is_bounded = started.is_bounded
        self._used: Used | None = None  # beyond what is known to be held of budgets
        self._told: Json | None = None  # what the agent has told before its answer
        self._prompted = False
        self._fence = started.fence
        self._written = 0  # events of this turn that the store has under our fence
        self._has_lost = False  # the session, to another node
        self.is_last = False  # nothing waited in the session when the turn was ended
        self._projection = Projection()
        self._drafts: list[Draft] = []
        self._in_doubt: list[Draft] = []  # handed to the store, which has not said that they are written
        self._writing: WhenNeeded | None = None
        self._bytes = 0
        self._bytes_written_now = 0
        self._answered = False
        self._ending = False
        self._room = asyncio.Event()
        self._saying = asyncio.Lock()  # while what the agent said is taken in

    async def emit(self, event: AgentEvent, size: int) -> None:  # noqa: ARG002 - what counts is what we keep
        async with self._saying:
            parts = event.in_parts()
            try:
                for part in parts:
                    await self._take_in(part)
                    await self._wait_for_room()
            except asyncio.CancelledError:  # the agent is ended; what it has said is kept all the same
                for part in parts:
                    await self._take_in(part)
                raise

    async def _take_in(self, event: AgentEvent) -> None:
        self._progress.wait_for(WaitsFor.AGENT)
        made = draft_of(event, self.turn_index, self._clock.now())
        if event.kind is EventType.RESPONSE:
            self._answered = True  # the response is written together with the end of the turn
        if not await self._has_room(event, len(made.body)):
            return
        self._projection.feed(event, len(made.body))
        self._add(made)

    async def emit_words(self, words: Words) -> None:
        drafts = drafts_of(words, self.turn_index, self._clock.now())
        size = sum([len(draft.body) for draft in drafts])
        left = self._left_after(size)
        if self._is_full or (left is not None and left < 0):
            for event, line_size in words.events():
                await self.emit(event, line_size)
            return
        self._progress.wait_for(WaitsFor.AGENT)
        self._projection.feed_words(words.kind, "".join(words.texts))
        self._drafts += drafts
        self._bytes += size
        self._note_work()
        await self._wait_for_room()

    async def _wait_for_room(self) -> None:
        while self._bytes > HIGH_WATER and not (self._answered or self._ending):
            self._room.clear()
            self._progress.wait_for(WaitsFor.STORE)
            await self._room.wait()

    async def note_room(self) -> None:
        """Look up what the app may store, before the agent says anything; with none left, nothing begins."""
        if self._room_known is not None:
            self._learn_room(self._room_known.left)
            return
        with suppress(StoreUnavailable):  # then the first write tells
            self._learn_room(await self._store.read(self.app, self._quotas.room))

    async def _has_room(self, event: AgentEvent, size: int) -> bool:
        """Whether there is room for an event: what a full share has no room for is dropped, and that is told.

        A turn is stopped as soon as it fills the share, with what it said until then. The agent may take
        long to stop, so nothing more of it is kept, but for how it ended.
        """
        left = self._left_after(size)
        if not self._is_full and left is not None:
            if left < 0:
                self._fill()
            fits = left >= -OVERDRAFT
        else:
            fits = not self._is_full or (event.kind is EventType.RESPONSE and size <= LAST_WORDS)
        if not fits and not self._has_dropped:
            self._has_dropped = True
            await self.report_truncation(size, NO_ROOM)
        return fits

    def _left_after(self, size: int) -> int | None:
        """What the app may store after so much more, which will be in the log and in the message."""
        if self._room_left is None:
            return None
        return self._room_left - self._bytes - self._bytes_written_now - self._projection.size - 2 * size

    def _learn_room(self, room: int | None) -> None:
        self._room_left = room
        if room is not None and room - self._projection.size <= 0:
            self._fill()

    def _fill(self) -> None:
        self._is_full = True
        self._watch.end_space()

    async def report_truncation(self, dropped: int, reason: str) -> None:
        fields = {"dropped_bytes": dropped, "reason": reason}
        self._projection.truncated = True
        self._add(draft(EventType.OUTPUT_TRUNCATED, self.turn_index, self._clock.now(), fields))

    def note_usage(self, used: Used) -> None:
        self._told = used.usage or self._told
        self._watch.note(used)
        if self._is_bounded and (used.tokens is not None or used.cost_usd is not None):
            self._used = used
            self._note_work()

    def note_prompt(self) -> None:
        """The agent is given the prompt: from here on the turn may cost something."""
        self._prompted = True

    def note_retry(self, failure: AgentError, secs: float) -> None:
        """Nobody began to answer, and the prompt is given to an agent again after so many seconds."""
        self._answered = False
        fields = {"code": failure.code, "error": failure.message, "wait_secs": round(secs, 3)}
        self._add(draft(EventType.TURN_RETRIED, self.turn_index, self._clock.now(), fields))

    async def ask_whether_to_run(self, question: Question) -> bool:
        """Whether a person lets the turn run though a budget is used up."""
        options = ({OPTION_ID: "run", "name": "Run it all the same", "kind": "allow_once"}, NOT_NOW)
        about = {"title": question.name, "budget_ids": list(question.budget_ids)}
        request = Ask(tool=question.name, kind=QUESTION, options=options, request=about)
        self._progress.wait_for(WaitsFor.PERMISSION)
        verdict = await self._ask(PermissionMode.ASK, request)
        if verdict.option_id != "run":
            return False
        session_id, turn_index = self.session_id, self.turn_index
        await self._store.write(self.app, lambda tx: allow(tx, session_id, turn_index))
        return True

    async def ask(self, request: Ask) -> Verdict:
        self._progress.wait_for(WaitsFor.PERMISSION)
        try:
            return await self._ask(self._mode, request)
        finally:
            self._progress.wait_for(WaitsFor.AGENT)

    async def _ask(self, mode: PermissionMode, request: Ask) -> Verdict:
        try:
            return await self._permissions.ask(
                self.app, self.session_id, self.turn_index, mode, request, fence=self._fence
            )
        except LeaseLost:  # whoever attends the turn is told by the task that writes, and ends the agent
            self._has_lost = True
            self._note_work()
            return Verdict(option_id=None)

    def start_writing(self, patience: float, bell: Bell) -> None:
        """Write what comes in until the turn is ended. The bell rings when the store stays down."""
        work, name = partial(self._write, patience), f"writer {self.session_id}"
        self._writing = WhenNeeded(work, self._has_to_write, bell.ring, name)
        if self._has_to_write():
            self._note_work()

    def stop_writing(self) -> None:
        if self._writing is not None:
            self._writing.cancel()

    @property
    def failure(self) -> BaseException | None:
        """Why nothing is written any more: the store stays down, or another node has the session."""
        return None if self._writing is None else self._writing.failure

    async def end(self, ending: Ending, *, rollback: bool = False, is_empty: bool = False) -> TurnRow:
        """The rest of the events and the end of the turn, in one transaction. Tried until it is done.

        `is_empty` says that other nodes are to begin with an empty workspace, until more is published.
        """
        self._ending = True
        self._room.set()
        if self._writing is not None:
            await self._writing.end()  # it is at its last write at most; what was not written is written now
        async with self._saying:  # a long text is taken in to its end: it waits for no room any more
            pass
        ending = self._complete(ending)
        session_id, turn_index, fence, now = self.session_id, self.turn_index, self._fence, self._clock.now()
        drafts, message = self._take_drafts(), self._projection.make_message(session_id, turn_index, now)
        drafts, in_doubt, written = await self._write_most(drafts), self._in_doubt, self._written

        def work(tx: Tx) -> tuple[TurnRow, bool]:
            turn = end_once(tx)
            return turn, not tx.count_queued(session_id)

        def end_once(tx: Tx) -> TurnRow:
            ended = tx.turn(session_id, turn_index)
            if ended is not None and ended.state is TurnState.ENDED:
                return ended  # an earlier try was written after all, with what follows from it
            missing = bool(in_doubt) and need_session(tx, session_id).written < written + len(in_doubt)
            turn = finish(
                tx,
                session_id,
                turn_index,
                ending,
                now,
                drafts=[*in_doubt, *drafts] if missing else drafts,
                message=message,
                fence=fence,
            )
            if is_empty:
                note_empty(tx, session_id, now)
            if rollback and not turn.cut:
                cut_turn(tx, session_id, turn_index, now)
            if ending.outcome is Outcome.INTERRUPTED:
                apply_policy(tx, turn, now)
            return turn

        turn, self.is_last = await self._persist(work, work, None)
        self._projection = Projection()  # tasks that have ended still know us, until garbage is collected
        return turn

    async def _write_most(self, drafts: list[Draft]) -> list[Draft]:
        """Write what is too much for one transaction, but for the agent's answer. What is left."""
        while not self._in_doubt and (some := first_of(drafts, HIGH_WATER)):
            await self._append(some, None)
            drafts = drafts[len(some) :]
        return drafts

    def _complete(self, ending: Ending) -> Ending:
        """Without an answer, what the agent told before counts: it was used, whatever ended the agent."""
        return replace(ending, reached_agent=self._prompted, usage=ending.usage or self._told)

    async def end_without_answer(self, ending: Ending) -> TurnRow:
        """The end of the turn and nothing else: what was to be written with it cannot be."""
        ending = self._complete(ending)
        session_id, turn_index, fence, now = self.session_id, self.turn_index, self._fence, self._clock.now()

        def work(tx: Tx) -> TurnRow:
            return finish(tx, session_id, turn_index, ending, now, fence=fence)

        return await self._persist(work, work, None)

    def _note_work(self) -> None:
        if self._writing is not None:
            self._writing.note()

    def _has_to_write(self) -> bool:
        """What came together with the answer is written with the end of the turn."""
        return self._has_lost or self._used is not None or (bool(self._drafts) and not self._answered)

    async def _write(self, patience: float) -> None:
        if self._has_lost:
            raise LeaseLost
        if self._drafts and not (self._answered or self._ending):
            self._bytes_written_now = self._bytes
            self._in_doubt = self._take_drafts()
            await self._append(self._in_doubt, patience)
            self._in_doubt = []
        if self._used is not None and not self._ending:
            await self._hold_more(patience)

    async def _hold_more(self, patience: float) -> None:
        """Hold what the turn has used so far of its budgets; it is stopped where it has crossed one."""
        used, self._used = self._used or Used(), None
        session_id, turn_index = self.session_id, self.turn_index

        def work(tx: Tx) -> str | None:
            return extend(tx, session_id, turn_index, used)

        crossed = await self._persist(work, work, patience)
        if crossed is not None:
            self._watch.end_budget(crossed)

    def _add(self, event: Draft) -> None:
        self._drafts.append(event)
        self._bytes += len(event.body)
        self._note_work()

    def _take_drafts(self) -> list[Draft]:
        drafts, self._drafts, self._bytes = self._drafts, [], 0
        self._room.set()
        return drafts

    async def _append(self, drafts: Sequence[Draft], patience: float | None) -> None:
        session_id, fence, written = self.session_id, self._fence, self._written + len(drafts)
        loop = asyncio.get_running_loop()
        is_little = self._room_left is not None and self._room_left < PLENTY
        looks = is_little or loop.time() >= self._room_until

        def append(tx: Tx) -> int | None:
            tx.append(session_id, drafts, fence=fence, written=written)
            return self._quotas.room(tx) if looks else None

        def append_unless_written(tx: Tx) -> int | None:
            check_lease(tx, session_id, fence)
            is_written = need_session(tx, session_id).written >= written
            return append(tx) if not is_written else self._quotas.room(tx) if looks else None

        room = await self._persist(append, append_unless_written, patience)
        self._written = written
        if looks:
            self._room_until = loop.time() + ROOM_SECS
        elif self._room_left is not None:
            room = self._room_left - self._bytes_written_now
        self._bytes_written_now = 0
        self._learn_room(room)

    async def _persist(
        self, work: Callable[[Tx], T], work_again: Callable[[Tx], T], patience: float | None
    ) -> T:
        """Write, and keep trying for a while. `work_again` checks first whether an earlier try succeeded."""
        loop = asyncio.get_running_loop()
        deadline = None if patience is None else loop.time() + patience
        while True:
            try:
                return await self._store.write(self.app, work)
            except StoreUnavailable:
                if deadline is not None and loop.time() > deadline:
                    raise
                await asyncio.sleep(RETRY_SECS)
                work = work_again
