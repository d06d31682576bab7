"""An event loop whose clock is virtual and whose order of ready callbacks is drawn from a seed.

Nothing here waits for real time and nothing runs beside it: work for a thread is done by the loop itself, at
a moment that chance decides. The same seed makes the same schedule.
"""

import asyncio
import heapq
import random
from asyncio import events
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from typing import Any, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Awaited = Generator[Any, None, T] | Coroutine[Any, Any, T]


class ThreadJob:
    """Work that a thread would do. `takes` is its time beyond the usual; `on_end` is called when it ends."""

    def __init__(self) -> None:
        self.takes = 0.0
        self.on_end: list[Callable[[], None]] = []


class SimLoop(asyncio.BaseEventLoop):
    """`shuffle` is how often a callback is chosen by chance instead of the one that waits longest."""

    def __init__(self, chance: random.Random, shuffle: float, began: float) -> None:
        super().__init__()
        self.chance = chance
        self.steps = 0
        self.errors: list[str] = []
        self.tasks: list[asyncio.Task[Any]] = []
        self.job: ThreadJob | None = None
        self.draw_work: Callable[[], float] = lambda: 0.0
        self._shuffle = shuffle
        self._now = began
        self._ready: list[asyncio.Handle] = []
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._count = 0

    def time(self) -> float:
        return self._now

    def run_while(self, wanted: Callable[[], bool]) -> None:
        """Step on while there is something to do and `wanted` says so."""
        events._set_running_loop(self)
        try:
            while wanted() and self._step():
                pass
        finally:
            events._set_running_loop(None)

    def abandon(self) -> None:
        """As after a kill: nothing that waits here ever goes on. What it would still clean up is cut off."""
        self._ready.clear()
        self._timers.clear()
        for task in self.tasks:
            if not task.done():
                task._log_destroy_pending = False  # type: ignore[attr-defined]

    def _step(self) -> bool:
        while not self._ready:
            if not self._timers:
                return False
            when, _, timer = heapq.heappop(self._timers)
            if not timer.cancelled():
                self._now = max(self._now, when)
                self._ready.append(timer)
        ready, at = self._ready, 0
        if len(ready) > 1 and self._shuffle and self.chance.random() < self._shuffle:
            at = self.chance.randrange(len(ready))
        handle = ready.pop(at)
        if not handle.cancelled():
            self.steps += 1
            handle._run()
        return True

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        self._count += 1
        heapq.heappush(self._timers, (when, self._count, timer))
        return timer

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self, coro: Awaited[T], *, name: object = None, context: Context | None = None
    ) -> asyncio.Task[T]:
        task = asyncio.Task(
            coro, loop=self, name=str(name) if name else f"task {len(self.tasks)}", context=context
        )
        self.tasks.append(task)
        return task

    def run_in_executor(self, _executor: object, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        """Begins after a moment unless it was cancelled before; its end is told after another."""
        future: asyncio.Future[T] = self.create_future()
        job = ThreadJob()

        def begin() -> None:
            if future.cancelled():
                return
            result, error = None, None
            self.job = job
            try:
                result = func(*args)
            except Exception as failure:
                error = failure
            finally:
                self.job = None
            self.call_later(self.draw_work() + job.takes, end, result, error)

        def end(result: Any, error: Exception | None) -> None:
            for call in job.on_end:
                call()
            if future.done():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)

        self.call_later(self.draw_work(), begin)
        return future

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.errors.append(f"{context.get('message')}: {context.get('exception')!r}")

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def __del__(self) -> None:
        """There is nothing to close."""

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """A cancelled timer is left where it is and skipped when its time comes."""
