"""Several agents are tried at once, and none beside one that is timed."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock, Semaphore


class Quiet:
    """For so many threads: each step of theirs runs beside those of others, or alone."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._running = Semaphore(threads)
        self._asking = Lock()  # two that want to be alone would each hold what the other waits for

    @contextmanager
    def beside_others(self) -> Iterator[None]:
        with self._asking:
            self._running.acquire()
        try:
            yield
        finally:
            self._running.release()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody begins a step while somebody waits for this; what is under way comes to its end first."""
        with self._asking, ExitStack() as held:
            for _ in range(self._threads):
                held.enter_context(self._running)
            yield
