"""Moves the write-ahead log into the database without anybody waiting for it.

A thread of its own moves most of it, beside the one that writes. The rest, what was written meanwhile, is
little, and the writing thread moves it after callers were answered: only so the log comes to an end and
starts over. Neither waits for readers: while a long one (a backup) reads an old state, the log grows, and is
moved later.
"""

import contextlib
import logging
import threading
import time
from pathlib import Path
from typing import Final

import apsw

from clawdforge.core.histogram import Histogram
from clawdforge.stores.sqlite.connection import DISK_ERRORS, WRITER_PATIENCE_MS, open_mover

log = logging.getLogger(__name__)

FEW_PAGES: Final = 1000  # less is not worth the syncs
MANY_PAGES: Final = 2000  # 8 MiB: from here on it comes to its end even while jobs wait
SHORT_PAGES: Final = 250  # 1 MiB: so much the writing thread moves by itself
LONG_PAGES: Final = 4096  # 16 MiB: from here on it moves all of it, since what is written outruns the mover
CROWDED_PAGES: Final = 65_536  # 256 MiB: try to start the log over, so that its file becomes small again
REST_SECS: Final = 1.0  # between attempts that did not move everything
TIME_CLASSES: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


class Checkpoints:
    """Counts the pages of the log and moves them in time. Used by the thread that writes."""

    def __init__(self, path: Path) -> None:
        self.times = Histogram(TIME_CLASSES)
        """Of those that the writing thread makes, which others may have to wait for."""
        self._path = path
        self._pages = 0
        self._moved = 0
        self._again_at = 0.0
        self._mover: threading.Thread | None = None

    def follow(self, connection: apsw.Connection) -> None:
        """Count what this connection commits from now on."""
        self._pages = self._moved = 0
        connection.set_wal_hook(self._count)

    def _count(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        if pages < self._pages:  # the log has started over
            self._moved = 0
        self._pages = pages
        return apsw.SQLITE_OK

    def after_commit(self, connection: apsw.Connection, *, jobs_wait: bool) -> None:
        """If it fails the log just grows: the writes are safe in it."""
        if self._pages >= LONG_PAGES:
            self.wait()
        if self._pages < FEW_PAGES or self._is_moving() or time.monotonic() < self._again_at:
            return
        left = self._pages - self._moved
        if left > SHORT_PAGES and self._pages < LONG_PAGES and self._start_mover():
            return
        if not jobs_wait or self._pages >= MANY_PAGES:
            self._move_rest(connection)

    def _start_mover(self) -> bool:
        """False where there is no thread to be had, such as beside an agent that forks without end."""
        mover = threading.Thread(target=self._move_beside, name="store-mover", daemon=True)
        try:
            mover.start()
        except RuntimeError:
            return False
        self._mover = mover
        return True

    def wait(self) -> None:
        """Until nothing is being moved, before the last connection is closed."""
        if self._mover is not None:
            self._mover.join()

    def _is_moving(self) -> bool:
        return self._mover is not None and self._mover.is_alive()

    def _move_beside(self) -> None:
        try:
            with contextlib.closing(open_mover(self._path)) as connection:
                self._move(connection, apsw.SQLITE_CHECKPOINT_PASSIVE)
        except DISK_ERRORS as error:
            self._give_up(error)

    def _move_rest(self, connection: apsw.Connection) -> None:
        mode = apsw.SQLITE_CHECKPOINT_PASSIVE
        if self._pages >= CROWDED_PAGES:
            mode = apsw.SQLITE_CHECKPOINT_TRUNCATE
        begun = time.perf_counter()
        connection.set_busy_timeout(0)
        try:
            self._move(connection, mode)
        except DISK_ERRORS as error:
            self._give_up(error)
        finally:
            connection.set_busy_timeout(WRITER_PATIENCE_MS)
            self.times.observe(time.perf_counter() - begun)

    def _move(self, connection: apsw.Connection, mode: int) -> None:
        in_log, self._moved = connection.wal_checkpoint(mode=mode)
        if in_log != self._moved:
            self._again_at = time.monotonic() + REST_SECS

    def _give_up(self, error: apsw.Error) -> None:
        """For a while. Where somebody reads an old state, what could be moved was moved."""
        self._again_at = time.monotonic() + REST_SECS
        if not isinstance(error, apsw.BusyError):
            log.warning("the write-ahead log could not be moved into %s: %s", self._path, error)
