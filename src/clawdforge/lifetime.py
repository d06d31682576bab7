"""When a server ends: at a signal with grace, at a second one at once, or when nobody needs it any more."""

import asyncio
import logging
import os
import signal
from typing import Final

log = logging.getLogger(__name__)
AT_ONCE: Final = 1
"""The exit code of a server that was not given the time to stop. Nothing is lost by that: see recovery."""


class Lifetime:
    """Made first of all, so that a signal that comes while the server starts is not lost."""

    def __init__(self) -> None:
        self.stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled)

    def end(self, why: str) -> None:
        if not self.stopping.is_set():
            log.info("stopping: %s", why)
            self.stopping.set()

    def _signalled(self) -> None:
        if self.stopping.is_set():
            os._exit(AT_ONCE)
        self.end("told to by a signal")
