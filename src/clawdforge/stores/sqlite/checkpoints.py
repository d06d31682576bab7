"""Moves the write-ahead log into the database, by the writing thread, without anybody waiting for it.

It is done after callers were answered and, as long as the log is short, only when no job waits. It never
waits for readers: while a long one (a backup) reads an old state, the log grows, and is moved later.
"""

import logging
import time
from pathlib import Path
from typing import Final

import apsw

from clawdforge.core.histogram import Histogram
from clawdforge.stores.sqlite.connection import DISK_ERRORS, WRITER_PATIENCE_MS

log = logging.getLogger(__name__)

FEW_PAGES: Final = 1000  # less is not worth the syncs
MANY_PAGES: Final = 2000  # 8 MiB: from here on it is done even while jobs wait
CROWDED_PAGES: Final = 65_536  # 256 MiB: try to start the log over, so that its file becomes small again
REST_SECS: Final = 1.0  # between attempts that did not move everything
TIME_CLASSES: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


class Checkpoints:
    """Counts the pages of the log and moves them in time. Used by one thread."""

    def __init__(self, path: Path) -> None:
        self.times = Histogram(TIME_CLASSES)
        self._path = path
        self._pages = 0
        self._again_at = 0.0

    def follow(self, connection: apsw.Connection) -> None:
        """Count what this connection commits from now on."""
        self._pages = 0
        connection.set_wal_hook(self._count)

    def _count(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self._pages = pages
        return apsw.SQLITE_OK

    def after_commit(self, connection: apsw.Connection, *, jobs_wait: bool) -> None:
        """If it fails the log just grows: the writes are safe in it."""
        if self._pages < (MANY_PAGES if jobs_wait else FEW_PAGES) or time.monotonic() < self._again_at:
            return
        mode = apsw.SQLITE_CHECKPOINT_PASSIVE
        if self._pages >= CROWDED_PAGES:
            mode = apsw.SQLITE_CHECKPOINT_TRUNCATE
        begun = time.perf_counter()
        connection.set_busy_timeout(0)
        try:
            in_log, moved = connection.wal_checkpoint(mode=mode)
            is_done = in_log == moved
        except apsw.BusyError:
            is_done = False  # somebody reads an old state; what could be moved was moved
        except DISK_ERRORS as error:
            is_done = False
            log.warning("the write-ahead log could not be moved into %s: %s", self._path, error)
        finally:
            connection.set_busy_timeout(WRITER_PATIENCE_MS)
            self.times.observe(time.perf_counter() - begun)
        self._again_at = 0.0 if is_done else time.monotonic() + REST_SECS
