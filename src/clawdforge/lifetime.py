"""Decides when a server stops: gracefully at a signal, at once at a second one, or when it has been idle."""

import asyncio
import logging
import os
import signal
from typing import Final

log = logging.getLogger(__name__)
AT_ONCE: Final = 1
"""The exit code of a server that had no time to stop gracefully. Nothing is lost: see recovery."""


class Lifetime:
    """Created before anything else, so that a signal that arrives during the start is not lost."""

    def __init__(self) -> None:
        self.stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal)

    def end(self, why: str) -> None:
        if not self.stopping.is_set():
            log.info("stopping: %s", why)
            self.stopping.set()

    def _on_signal(self) -> None:
        if self.stopping.is_set():
            os._exit(AT_ONCE)
        self.end("received a signal")
