"""Decides when a server stops: gracefully at a signal, at once at a second one, or when it has been idle."""

import asyncio
import logging
import os
import signal
import threading
from typing import Final

log = logging.getLogger(__name__)
AT_ONCE: Final = 1
"""The exit code of a server that had no time to stop gracefully. Nothing is lost: see recovery."""

LAST_SECS: Final = 45.0
"""After the grace a stop takes at most so long. All that is waited for has a bound of its own; this one is
for what cannot be left behind, such as a thread that a disk or git keeps, and for what nobody thought of."""


class Lifetime:
    """Created before anything else, so that a signal that arrives during the start is not lost."""

    def __init__(self, stop_secs: float) -> None:
        """`stop_secs` after the begin of a stop the process ends, if it is still there."""
        self.stopping = asyncio.Event()
        self.drained = asyncio.Event()
        """Set once turns and runs have had their time to end; what is left is not waited for again."""

        self._stop_secs = stop_secs
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal)

    def end(self, why: str) -> None:
        if not self.stopping.is_set():
            log.info("stopping: %s", why)
            self.stopping.set()
            last = threading.Timer(self._stop_secs, self._give_up)
            last.daemon = True  # it ends with the process
            last.start()

    def _give_up(self) -> None:
        """In a thread of its own, since the event loop may be what stands still."""
        log.error("the server did not stop within %g s; it ends as it is", self._stop_secs)
        os._exit(AT_ONCE)

    def _on_signal(self) -> None:
        if self.stopping.is_set():
            os._exit(AT_ONCE)
        self.end("received a signal")
