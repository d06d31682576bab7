"""Runs turns: a worker for each session that has work, an agent for each worker, and their ends.

A worker exists only while its session has a turn to run. It takes a place in the pool, claims the next
queued turn, brings the agent to life, attends the turn, and copies the agent's home at the boundary.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from clawdforge.core.model import Clock
from clawdforge.core.ports import Homes, LeaseLost, LiveAgent, Snapshots, Store, Tx
from clawdforge.core.rules.turns import Started, find_started, start_next
from clawdforge.core.running.attendant import Attendant, Stop
from clawdforge.core.running.pool import AgentPool, Place
from clawdforge.wire.errors import SessionBusy, Stopping, StoreUnavailable
from clawdforge.wire.turn import Outcome

log = logging.getLogger(__name__)
STORE_RETRY_SECS = 0.5
HOLD_SECS = 10.0
ANSWER_SECS = 0.003  # the answer goes out first: who copies takes the processor from it


@dataclass(eq=False)
class Worker:
    """What runs in one session at the moment."""

    app: str
    session_id: str
    task: asyncio.Task[None] | None = None
    stop: Stop | None = None
    turn_index: int | None = None
    again: bool = False
    unsure: bool = False  # a turn may have been started in a commit whose outcome is unknown
    ran: int = 0  # the turn that it ran last, or runs
    copied: asyncio.Event = field(default_factory=asyncio.Event)  # after that turn
    left: asyncio.Event = field(default_factory=asyncio.Event)  # the session is free again


class Supervisor:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        pool: AgentPool,
        attendant: Attendant,
        homes: Homes,
        snapshots: Snapshots,
        node: str,
    ) -> None:
        self._store = store
        self._clock = clock
        self._pool = pool
        self._attendant = attendant
        self._homes = homes
        self._snapshots = snapshots
        self._node = node
        self._workers: dict[str, Worker] = {}
        self._reserved: dict[str, Worker] = {}  # sessions whose turn is being written, with its place
        self._stopping = False

    @property
    def node(self) -> str:
        return self._node

    @property
    def running(self) -> int:
        return sum(worker.turn_index is not None for worker in self._workers.values())

    @property
    def idle(self) -> bool:
        """Nothing runs and nothing waits for its place."""
        return not self._workers

    def busy(self, session_id: str) -> bool:
        """Something is being done in this session, a copy after a turn included."""
        return session_id in self._workers

    def reserve(self, app: str, session_id: str) -> Place | None:
        """A place for a turn that could start at once; None when it has to wait its turn."""
        if self._stopping:
            raise Stopping
        if session_id in self._workers or session_id in self._reserved:
            return None
        place = self._pool.try_take(app, session_id)
        if place is not None:
            self._reserved[session_id] = Worker(app, session_id)
        return place

    def release(self, place: Place) -> None:
        """Nothing was started after all. Who wanted the session woken meanwhile gets it now."""
        waiting = self._reserved.pop(place.session_id)
        waiting.left.set()
        self._pool.give_back(place, self._now())
        if waiting.again:
            self.wake(place.app, place.session_id, unsure=waiting.unsure)

    def begin(self, place: Place, started: Started) -> None:
        """Run a turn that was started in the transaction that submitted it."""
        self._spawn(self._reserved.pop(place.session_id), place, started)

    def wake(self, app: str, session_id: str, *, unsure: bool = False) -> None:
        """There may be something to run in this session, or `unsure`, something that was started already."""
        worker = self._workers.get(session_id) or self._reserved.get(session_id)
        if worker is None and not self._stopping:
            worker = Worker(app, session_id)
            self._spawn(worker, None, None)
        if worker is not None:
            worker.again = True
            worker.unsure = worker.unsure or unsure

    async def cancel(self, session_id: str, turn_index: int | None = None, *, rollback: bool = False) -> bool:
        """Stop the running turn, keep what was said, and wait until it has ended."""
        worker = self._workers.get(session_id)
        if worker is None or worker.stop is None or turn_index not in (None, worker.turn_index):
            return False
        worker.stop.set(Outcome.CANCELLED, "cancelled", rollback=rollback)
        await worker.stop.done.wait()
        return True

    async def shut(self, session_id: str) -> None:
        """End the session's agent; no process of it is left."""
        await self._pool.end(session_id)

    def retire(self, session_id: str) -> None:
        """An idle agent that remembers what was taken back is of no more use."""
        self._pool.retire(session_id)

    async def copied(self, session_id: str, turn_index: int) -> None:
        """Wait until home and workspace were kept as they are after a turn that has ended."""
        worker = self._workers.get(session_id)
        if worker is not None and worker.ran == turn_index:
            await worker.copied.wait()

    async def between(self, session_id: str, within: float) -> None:
        """Wait a moment for the copy after a turn: the next can then start in the commit that records it."""
        worker = self._workers.get(session_id)
        if worker is not None and worker.ran and worker.turn_index is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(within):
                    await worker.copied.wait()

    async def rest(self, session_id: str, within: float) -> None:
        """Wait until a session in which no turn runs is left alone, also by the copy after its last one."""
        worker = self._workers.get(session_id)
        if worker is not None and worker.task is not None and worker.turn_index is None:
            await asyncio.wait({worker.task}, timeout=within)

    @asynccontextmanager
    async def hold(self, app: str, session_id: str) -> AsyncIterator[None]:
        """Keep turns of this session waiting, with no agent of it alive. SessionBusy when one goes on."""
        try:
            async with asyncio.timeout(HOLD_SECS):
                while worker := self._workers.get(session_id) or self._reserved.get(session_id):
                    await worker.left.wait()
        except TimeoutError:
            raise SessionBusy from None
        holder = self._workers[session_id] = Worker(app, session_id)
        try:
            await self._pool.end(session_id)
            yield
        finally:
            self._leave(holder)
            if holder.again:
                self.wake(app, session_id)

    async def stop(self, grace: float) -> None:
        """No new turns; running ones get some time, then they are interrupted; then all agents end."""
        self._stopping = True
        end = self._now() + grace
        while self._reserved and self._now() < end:  # noqa: ASYNC110 - the time of a commit, once
            await asyncio.sleep(0.01)
        busy = {worker.task for worker in self._workers.values() if worker.task}
        if busy and grace > 0:
            await asyncio.wait(busy, timeout=max(0.0, end - self._now()))
        for worker in list(self._workers.values()):
            if worker.stop is not None:
                worker.stop.set(Outcome.INTERRUPTED, "the server was stopped")
            elif worker.task is not None:
                worker.task.cancel()
        left = {worker.task for worker in self._workers.values() if worker.task}
        if left:
            await asyncio.wait(left, timeout=10)
        await self._pool.close()

    async def sleep_idle(self, every: float) -> None:
        """Put agents to sleep that have had nothing to do for a while. Runs for ever."""
        while True:
            await asyncio.sleep(every)
            self._pool.sleep_idle(self._now())

    def _spawn(self, worker: Worker, place: Place | None, started: Started | None) -> None:
        if started is not None:
            worker.turn_index, worker.stop = started.turn.turn_index, Stop()
        self._workers[worker.session_id] = worker
        worker.task = asyncio.create_task(
            self._work(worker, place, started), name=f"worker {worker.session_id}"
        )

    async def _work(self, worker: Worker, place: Place | None, started: Started | None) -> None:
        try:
            place = place or await self._pool.take(worker.app, worker.session_id)
            while started := started or await self._next(worker):
                await self._run(worker, place, started)
                started = None
        except LeaseLost:
            log.warning("another node holds the session now", extra={"session_id": worker.session_id})
            if place is not None:
                await self._pool.drop_agent(place)
        except Exception:  # the top of a task: nothing above could report it
            log.exception("a worker failed", extra={"session_id": worker.session_id})
        finally:
            self._leave(worker)
            if place is not None:
                self._pool.give_back(place, self._now())

    def _leave(self, worker: Worker) -> None:
        del self._workers[worker.session_id]
        worker.left.set()

    async def _next(self, worker: Worker) -> Started | None:
        """The next turn to run. A prompt that comes in while this looks is looked for once more."""
        while not self._stopping:
            worker.again = False
            try:
                started = await self._find_next(worker)
            except StoreUnavailable:
                worker.unsure = True
                await asyncio.sleep(STORE_RETRY_SECS)
                continue
            worker.unsure = False
            if started is not None or not worker.again:
                return started
        return None

    async def _find_next(self, worker: Worker) -> Started | None:
        """Mostly there is nothing, and a look costs no commit."""
        app, session_id = worker.app, worker.session_id
        if not worker.unsure and not await self._store.read(app, lambda view: view.queued_turns(session_id)):
            return None
        return await self._store.write(app, lambda tx: self._start(tx, worker))

    def _start(self, tx: Tx, worker: Worker) -> Started | None:
        if self._stopping:
            return None
        found = find_started(tx, worker.session_id, self._node) if worker.unsure else None
        return found or start_next(tx, worker.session_id, self._node, self._clock.now())

    async def _run(self, worker: Worker, place: Place, started: Started) -> None:
        turn_index, stop = started.turn.turn_index, worker.stop or Stop()
        worker.turn_index, worker.stop = turn_index, stop
        worker.ran, worker.copied = turn_index, asyncio.Event()
        try:
            try:
                await self._attendant.attend(place, worker.app, started, stop)
            finally:
                worker.turn_index = worker.stop = None
                stop.done.set()
            agent = place.agent  # also when it is ended meanwhile, what it remembers is worth a copy
            await asyncio.sleep(ANSWER_SECS)
            await asyncio.gather(
                self._keep_home(worker.session_id, turn_index, agent),
                self._snapshots.take(started.session, turn_index),
            )
        finally:
            worker.copied.set()

    async def _keep_home(self, session_id: str, turn_index: int, agent: LiveAgent | None) -> None:
        if agent is None:
            return
        try:
            await self._homes.keep(session_id, turn_index, agent.agent_session_id, agent)
        except OSError:  # without this copy, an undo to here gives the agent the transcript instead
            log.exception("could not copy the home", extra={"session_id": session_id})

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
