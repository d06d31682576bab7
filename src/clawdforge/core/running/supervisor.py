"""Runs turns: one worker for each session that has work, and one agent for each worker.

A worker exists only while its session has a turn to run. It takes a seat in the pool, starts the next
queued turn, has it attended, and copies the agent's home and the workspace at the boundary.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

from clawdforge.core.clock import Clock
from clawdforge.core.models.rows import AppRow, SessionRow
from clawdforge.core.ports import LeaseLost, Store, View
from clawdforge.core.rules.quotas import NO_QUOTAS, Quotas
from clawdforge.core.rules.turns import StartedTurn
from clawdforge.core.running.attendant import Attendant
from clawdforge.core.running.boundary import Boundary
from clawdforge.core.running.elsewhere import Elsewhere
from clawdforge.core.running.next_turns import STORE_RETRY_SECS, NextTurns
from clawdforge.core.running.pool import AgentPool, Seat
from clawdforge.core.running.progress import Waiting
from clawdforge.core.running.stops import Stop
from clawdforge.core.running.worker import Worker
from clawdforge.wire.admin import WaitsFor
from clawdforge.wire.errors import SessionBusy, Stopping, StoreUnavailable
from clawdforge.wire.turn import Outcome

log = logging.getLogger(__name__)
WORKER_RETRY_SECS = 5.0
HOLD_SECS = 10.0
ASK_SECS = 5.0
"""So long an agent may take to end its turn by itself when the server stops; a cancel may give it longer."""

LEAVE_SECS = 10.0
"""So long workers are waited for after that. A home that is being copied may keep one for longer."""


class Supervisor:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        pool: AgentPool,
        attendant: Attendant,
        boundary: Boundary,
        elsewhere: Elsewhere,
        note_files: Callable[[str, str], None],
        quotas: Quotas = NO_QUOTAS,
    ) -> None:
        self._store = store
        self._clock = clock
        self._pool = pool
        self._attendant = attendant
        self._boundary = boundary
        self._elsewhere = elsewhere
        self._note_files = note_files
        self._quotas = quotas
        self._workers: dict[str, Worker] = {}
        self._reserved: dict[str, Worker] = {}  # sessions with a seat whose turn is being written
        self._failed: dict[str, Worker] = {}  # they try again soon: what they have begun is still theirs
        self._next = NextTurns(store, clock, elsewhere)

    def find_waiting(self, longer_than: float) -> list[Waiting]:
        """Sessions whose work has waited for the same thing for so many seconds, the longest wait first."""
        now = self._now()
        found = [
            Waiting(one.app, one.session_id, one.running, one.progress.waits_for, now - one.progress.since)
            for one in (*self._workers.values(), *self._reserved.values(), *self._failed.values())
            if now - one.progress.since >= longer_than
        ]
        return sorted(found, key=lambda one: -one.secs)

    @property
    def node(self) -> str:
        return self._elsewhere.node

    @property
    def folder(self) -> str | None:
        """Where workspaces are that are made here; None where no other node could look for them."""
        return self._elsewhere.folder

    @property
    def is_idle(self) -> bool:
        """Nothing runs and nothing waits for a seat."""
        return not self._workers

    async def find_session(self, app: str, session_id: str) -> SessionRow | None:
        """A session that is to run. How many agents its app may have is looked up as well."""

        def look(view: View) -> tuple[SessionRow | None, int | None]:
            return view.session(session_id), self._quotas.max_agents(view)

        session, most = await self._store.read(app, look)
        self._pool.limit(app, most)
        return session

    def limit_agents(self, app: str, row: AppRow) -> None:
        """The operator has changed what the app may have."""
        self._pool.limit(app, self._quotas.agents_of(app, row))

    def reserve(self, app: str, session_id: str, parent: str | None = None) -> Seat | None:
        """A seat for a turn that could start at once; None when it has to wait its turn."""
        if self._next.is_stopping:
            raise Stopping
        if session_id in self._workers or session_id in self._reserved:
            return None
        if not self._elsewhere.may_start:
            return None
        seat = self._pool.try_take(app, session_id, parent)
        if seat is not None:
            worker = self._reserved[session_id] = Worker(app, session_id)
            worker.progress.wait_for(WaitsFor.STORE)
        return seat

    def release(self, seat: Seat) -> None:
        """Give the seat back: nothing was started. A wake-up that came meanwhile is carried out now."""
        waiting = self._reserved.pop(seat.session_id)
        waiting.boundary.set()
        self._pool.give_back(seat, self._now())
        if waiting.look_again:
            self.wake(seat.app, seat.session_id, after=waiting)

    def begin(self, seat: Seat, started: StartedTurn) -> None:
        """Run a turn that was started in the transaction that submitted it."""
        worker = self._reserved.pop(seat.session_id)
        worker.begin(started.turn.turn_index)
        self._start_worker(worker, seat, started)

    def wake(
        self, app: str, session_id: str, *, start_in_doubt: bool = False, after: Worker | None = None
    ) -> None:
        """There may be a turn to run in this session, perhaps one that was started without our knowing.

        What `after` has left undone, or a worker that failed, is looked after as well.
        """
        after = after or self._failed.pop(session_id, None)
        worker = self._workers.get(session_id) or self._reserved.get(session_id)
        if worker is None and not self._next.is_stopping:
            worker = Worker(app, session_id)
            self._start_worker(worker, None, None)
        if worker is not None:
            worker.look_again = True
            worker.start_in_doubt = worker.start_in_doubt or start_in_doubt
        if after is not None:
            (worker or Worker(app, session_id)).take_over(after)

    async def cancel(
        self, app: str, session_id: str, turn_index: int | None = None, *, rollback: bool = False
    ) -> bool:
        """Stop the running turn, keep what was said, and wait until it has ended.

        True if it was this call that ended it: of several at once the first, and none if the agent was done.
        That may take long, since an agent is ended again and again until it is gone, and a store that is down
        is waited for. A caller has a time limit of its own.
        A reader sees the start of a turn a moment before its worker does, and may want to stop it already.
        A worker that failed may have started one, and is waited for until it has tried again.
        """
        while worker := self._find_worker(session_id):
            stop, boundary = worker.stop, worker.boundary
            if stop is not None:
                if turn_index not in (None, worker.running):
                    return False
                is_first = stop.request(Outcome.CANCELLED, "cancelled", rollback=rollback)
                await stop.ended.wait()
                if stop.ended_as is not None:
                    return is_first and stop.ended_as is Outcome.CANCELLED
                continue  # its end is not written yet
            active = await self._store.read(app, lambda view: view.active_turn(session_id))
            if active is None or turn_index not in (None, active.turn_index):
                return False
            if self._elsewhere.is_there(await self.find_session(app, session_id)):
                break  # it runs at another node, and here somebody waits for a place
            await boundary.wait()
        return await self._elsewhere.cancel(app, session_id, turn_index, rollback=rollback)

    async def end_agent(self, app: str, session_id: str) -> bool:
        """End the session's agent. False if a process of it may be left: then keep out of its folders."""
        is_ended = await self._pool.end_agent(session_id)
        await self._elsewhere.ask_to_leave(app, session_id)
        return is_ended

    async def retire_agent(self, app: str, session_id: str) -> None:
        """End the session's agent as soon as no turn runs. The next turn starts it again."""
        self._pool.retire_agent(session_id)
        await self._elsewhere.ask_to_leave(app, session_id)

    def give_up(self, reason: str) -> None:
        """End all agents at once: other nodes may run these sessions now."""
        for worker in self._workers.values():
            if worker.stop is not None:
                worker.stop.request(Outcome.INTERRUPTED, reason)
                worker.stop.hurried.set()
        self._pool.retire_all()

    async def leave(self, app: str, session_id: str) -> None:
        """Let another node have the session, at the next boundary of its turns."""
        try:
            async with self._hold_here(app, session_id, HOLD_SECS):
                await self._elsewhere.let_go(app, session_id)
        except SessionBusy:
            self._pool.retire_agent(session_id)

    def has_worker(self, session_id: str) -> bool:
        return self._find_worker(session_id) is not None

    def runs(self, session_id: str, turn_index: int) -> bool:
        """Whether this turn runs here. When it no longer does, those who expect its answer are told."""
        worker = self._workers.get(session_id)
        return worker is not None and worker.running == turn_index

    def has_agent(self, session_id: str) -> bool:
        """Whether this session has an agent here, or is about to."""
        return self.has_worker(session_id) or self._pool.has_seat(session_id)

    def measure(self, app: str, session_id: str) -> None:
        """Files of this session were changed by somebody else than a turn."""
        self._note_files(app, session_id)

    async def wait_for_copy(
        self, session_id: str, turn: int | None = None, within: float | None = None
    ) -> None:
        """Wait until home and workspace are kept as the last turn left them. At once where no copy is made.

        With `turn`, which has ended, only for the copy after that one; with `within`, for so many seconds.
        Without it, as long as git and the copy of a home are given.
        """
        worker = self._workers.get(session_id)
        if worker is None:
            return
        if worker.is_copying if turn is None else worker.last_turn == turn:
            with suppress(TimeoutError):
                async with asyncio.timeout(within):
                    await worker.boundary.wait()

    @contextmanager
    def stand_aside(self, session_id: str) -> Iterator[None]:
        """For the time in which a turn, which has no agent yet, waits for whoever puts files back."""
        worker = self._workers[session_id]
        worker.stands_aside = True
        worker.boundary.set()
        worker.boundary = asyncio.Event()
        try:
            yield
        finally:
            worker.stands_aside = False

    @asynccontextmanager
    async def hold(
        self, app: str, session_id: str, within: float = HOLD_SECS, *, or_aside: bool = False
    ) -> AsyncIterator[None]:
        """Keep turns of this session waiting, with no agent of it alive. SessionBusy when one goes on.

        With `or_aside`, a turn that stands aside is as good as none: it waits for us by itself. From other
        nodes the session is brought here.
        """
        async with self._hold_here(app, session_id, within, or_aside=or_aside) as is_aside:
            if not is_aside:
                await self._elsewhere.bring_here(app, session_id, within)
            yield

    @asynccontextmanager
    async def _hold_here(
        self, app: str, session_id: str, within: float, *, or_aside: bool = False
    ) -> AsyncIterator[bool]:
        """Whether a turn of it stands aside."""
        try:
            async with asyncio.timeout(within):
                while worker := self._workers.get(session_id) or self._reserved.get(session_id):
                    if or_aside and worker.stands_aside:
                        break
                    await worker.boundary.wait()
        except TimeoutError:
            raise SessionBusy from None
        if worker is not None:
            yield True
            return
        holder = self._workers[session_id] = Worker(app, session_id)
        holder.progress.wait_for(WaitsFor.HISTORY)
        try:
            if not await self._pool.end_agent(session_id):
                raise SessionBusy("the agent of this session does not end; try again later")
            yield False
        finally:
            self._remove_worker(holder)
            if holder.look_again:
                self.wake(app, session_id, after=holder)

    async def stop(self, grace: float) -> None:
        """No new turns; running ones get some time, then they are interrupted; then all agents end.

        After `grace` this takes at most `ASK_SECS`, `LEAVE_SECS` and the pool's `CLOSE_SECS`.
        """
        self._next.is_stopping = True
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._wait_for_workers()
        for worker in list(self._workers.values()):
            if worker.stop is not None:
                worker.stop.request(Outcome.INTERRUPTED, "the server was stopped")
            elif worker.task is not None:
                worker.task.cancel()
        await self._wait_for_tasks(ASK_SECS)
        for worker in self._workers.values():
            if worker.stop is not None:
                worker.stop.hurried.set()
        await self._wait_for_tasks(LEAVE_SECS)
        await self._pool.close()

    async def _wait_for_workers(self) -> None:
        while self._reserved:
            await next(iter(self._reserved.values())).boundary.wait()
        await self._wait_for_tasks(None)

    async def _wait_for_tasks(self, within: float | None) -> None:
        tasks = {worker.task for worker in self._workers.values() if worker.task}
        if tasks:
            await asyncio.wait(tasks, timeout=within)

    async def sleep_idle(self, every: float) -> None:
        """Put agents to sleep that have had nothing to do for a while. Runs for ever."""
        while True:
            await asyncio.sleep(every)
            self._pool.sleep_idle(self._now())

    def _start_worker(self, worker: Worker, seat: Seat | None, started: StartedTurn | None) -> None:
        self._workers[worker.session_id] = worker
        worker.task = asyncio.create_task(
            self._work(worker, seat, started), name=f"worker {worker.session_id}"
        )

    def _find_worker(self, session_id: str) -> Worker | None:
        found = self._workers.get(session_id) or self._reserved.get(session_id)
        return found or self._failed.get(session_id)

    def _remove_worker(self, worker: Worker) -> None:
        del self._workers[worker.session_id]
        if worker.running is not None:  # it was cancelled before it ran it
            self._boundary.answers.note_end(worker.session_id, worker.running, None)
        worker.boundary.set()

    async def _work(self, worker: Worker, seat: Seat | None, started: StartedTurn | None) -> None:
        retry_secs = None
        try:
            # Before a seat, which may take long to get: it needs no agent.
            await self._next.write_owed_end(worker)
            if seat is None:
                session = await self.find_session(worker.app, worker.session_id)
                if await self._elsewhere.leave_to_runner(session, in_doubt=worker.start_in_doubt):
                    return
                parent = None if session is None else session.parent_session_id
                seat = await self._pool.take(worker.app, worker.session_id, parent)
            started = started or await self._next.start(worker)
            while started is not None:
                await self._run_turn(worker, seat, started)
                started = await self._next.start(worker)
        except LeaseLost:
            log.warning("another node holds the session now", extra={"session_id": worker.session_id})
            if seat is not None:
                await self._pool.drop_agent(seat)
        except StoreUnavailable:
            retry_secs = STORE_RETRY_SECS
        except Exception:  # the top of a task: nothing above could report it
            log.exception("a worker failed", extra={"session_id": worker.session_id})
            retry_secs = WORKER_RETRY_SECS
        finally:
            self._remove_worker(worker)
            if seat is not None:
                self._pool.give_back(seat, self._now(), failed=worker.has_failed)
            if retry_secs is not None:
                self._try_again(worker, retry_secs)
            else:
                self._elsewhere.note_boundary(worker.app, worker.session_id)

    def _try_again(self, worker: Worker, secs: float) -> None:
        worker.boundary = asyncio.Event()
        worker.progress.wait_for(WaitsFor.STORE)
        self._failed[worker.session_id] = worker
        asyncio.get_running_loop().call_later(secs, self.wake, worker.app, worker.session_id)

    async def _run_turn(self, worker: Worker, seat: Seat, started: StartedTurn) -> None:
        attended = None
        try:
            attended = await self._attendant.attend(seat, started, worker.stop or Stop(), worker.progress)
        finally:
            worker.end(attended)
            ended = attended.completed if attended is not None else None
            self._boundary.answers.note_end(worker.session_id, started.turn.turn_index, ended)
        worker.progress.wait_for(WaitsFor.COPY)
        session, seat.arrived = seat.arrived or started.session, None
        await self._boundary.keep(session, started.turn.turn_index, seat.agent)
        self._note_files(worker.app, worker.session_id)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
