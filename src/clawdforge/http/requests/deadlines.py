"""Ends requests that take too long, with one timer for all of them."""

import asyncio
from types import TracebackType

from clawdforge.wire.errors import RequestTimedOut


class Deadlines:
    """All requests may take equally long, so the first that began is the first that is due."""

    def __init__(self, secs: float) -> None:
        self.secs = secs
        self._open: dict[Deadline, None] = {}  # oldest first
        self._timer: asyncio.TimerHandle | None = None

    def __call__(self) -> "Deadline":
        """The block has so long. It may raise RequestTimedOut."""
        return Deadline(self)

    def begin(self, deadline: "Deadline") -> float:
        """When this one is due."""
        loop = asyncio.get_running_loop()
        self._open[deadline] = None
        ends_at = loop.time() + self.secs
        if self._timer is None:
            self._timer = loop.call_at(ends_at, self._look)
        return ends_at

    def end(self, deadline: "Deadline") -> None:
        self._open.pop(deadline, None)

    def _look(self) -> None:
        """End whoever is due, and come back for the next one. Nobody is there: who comes starts it again."""
        loop, self._timer = asyncio.get_running_loop(), None
        while self._open:
            first = next(iter(self._open))
            if first.ends_at > loop.time():
                self._timer = loop.call_at(first.ends_at, self._look)
                return
            self.end(first)
            first.expire()


class Deadline:
    """That of one task, as `asyncio.timeout` has it."""

    __slots__ = ("_all", "_cancelled", "_is_over", "_task", "ends_at")

    def __init__(self, every: Deadlines) -> None:
        self._all = every
        self._task: asyncio.Task[object] | None = None
        self._is_over = False

    def __enter__(self) -> None:
        self._task = asyncio.current_task()
        self._cancelled = 0 if self._task is None else self._task.cancelling()
        self.ends_at = self._all.begin(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._all.end(self)
        if self._is_over and self._task is not None:
            is_ours = self._task.uncancel() <= self._cancelled
            if is_ours and kind is asyncio.CancelledError:
                raise RequestTimedOut from None

    def expire(self) -> None:
        self._is_over = True
        if self._task is not None:
            self._task.cancel()
