"""Moves the write-ahead log into the database, beside the thread that writes, without anybody waiting for it.

A thread with a connection of its own moves what is there, while commits go on. What they add meanwhile is
little: the writing thread moves that itself, after callers were answered, and then the log begins anew. While
a long reader (a backup) reads an old state, the log grows, and is moved later.

Measured on two cores beside commits of 6 MiB: a small commit took 27 ms in the worst of a hundred cases where
the writing thread moved everything by itself, and 6 ms so.
"""

import contextlib
import logging
import threading
import time
from pathlib import Path
from typing import Final

import apsw

from clawdforge.core.histogram import Histogram
from clawdforge.stores.sqlite.connection import DISK_ERRORS, PAGE_BYTES, open_writer
from clawdforge.wire.errors import StoreUnavailable

log = logging.getLogger(__name__)

FEW_BYTES: Final = 4 << 20  # less is not worth the syncs
LAST_BYTES: Final = 512 << 10  # so much the writing thread moves by itself
MANY_BYTES: Final = 16 << 20  # from here on it does so even while jobs wait
LATE_BYTES: Final = 64 << 20  # who writes faster than the disk takes it waits for the other thread
LATE_SECS: Final = 0.25  # so long after each commit
REST_SECS: Final = 1.0  # between attempts that did not move everything
LATE_REST_SECS: Final = 0.05  # the same once the log is long
TIME_CLASSES: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


class Checkpoints:
    """Counts the bytes of the log, page by page, and has them moved in time. Used by the writing thread."""

    def __init__(self, path: Path) -> None:
        self.times = Histogram(TIME_CLASSES)
        self._mover = Mover(path)
        self._path = path
        self._page = PAGE_BYTES
        self.written = 0
        """Bytes that the last commit has added."""
        self._bytes = 0
        self._is_known = False  # how many they were before the next commit
        self._moved = 0  # of these
        self._failed_at = float("-inf")

    def follow(self, connection: apsw.Connection) -> None:
        """Count what this connection commits from now on."""
        self._bytes = self._moved = 0
        self._is_known = False
        self._page = int(connection.pragma("page_size"))
        connection.set_wal_hook(self._count)

    def _count(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        size = pages * self._page
        self.written = (size - self._bytes if size > self._bytes else size) if self._is_known else 0
        self._is_known = True
        self._moved = self._moved if size >= self._bytes else 0  # else the log has begun anew
        self._bytes = size
        return apsw.SQLITE_OK

    def after_commit(self, connection: apsw.Connection, *, jobs_wait: bool) -> None:
        """If it fails the log just grows: the writes are safe in it."""
        if self._mover.is_busy and (self._bytes < LATE_BYTES or not self._mover.wait(LATE_SECS)):
            return
        self._hear()
        left = self._bytes - self._moved
        rest = REST_SECS if self._bytes < LATE_BYTES else LATE_REST_SECS
        if time.monotonic() < self._failed_at + rest:
            return
        if self._is_near_the_end(left, jobs_wait=jobs_wait):
            self._finish(connection)
        elif left >= FEW_BYTES:
            self._mover.start()

    def _is_near_the_end(self, left: int, *, jobs_wait: bool) -> bool:
        """Whether the writing thread moves the rest. Whoever writes much without a pause leaves no small one:
        it moves a larger one then, and any in the end, since the log would grow for ever."""
        if self._bytes >= LATE_BYTES:
            return left <= MANY_BYTES or self._bytes >= 2 * LATE_BYTES
        return self._moved > 0 and left <= LAST_BYTES and (not jobs_wait or self._bytes >= MANY_BYTES)

    def stop(self) -> None:
        """Returns when nobody but the writing thread has the file open for writing."""
        self._mover.stop()

    def _hear(self) -> None:
        """What came of the last time that the other thread has worked."""
        moved, self._mover.result = self._mover.result, None
        if moved is not None:
            self.times.observe(moved.secs)
            size = moved.pages * self._page
            self._moved = size if size <= self._bytes else 0  # else the log has begun anew
            self._rest(is_done=moved.is_all)

    def _finish(self, connection: apsw.Connection) -> None:
        moved = _move(connection, self._path)
        self.times.observe(moved.secs)
        self._rest(is_done=moved.is_all)
        if moved.is_all:
            self._bytes = self._moved = 0

    def _rest(self, *, is_done: bool) -> None:
        self._failed_at = float("-inf") if is_done else time.monotonic()


class Moved:
    """What one attempt has done."""

    def __init__(self, secs: float, pages: int, *, is_all: bool) -> None:
        self.secs = secs
        self.pages = pages
        self.is_all = is_all


class Mover:
    """A thread that moves the log when it is told to, made when it is first needed."""

    def __init__(self, path: Path) -> None:
        self.result: Moved | None = None
        self._path = path
        self._idle = threading.Event()
        self._idle.set()
        self._orders = threading.Semaphore(0)
        self._is_ending = False
        self._thread: threading.Thread | None = None

    @property
    def is_busy(self) -> bool:
        return not self._idle.is_set()

    def wait(self, secs: float) -> bool:
        """Whether it was done within this time."""
        return self._idle.wait(secs)

    def start(self) -> None:
        if self._thread is None:
            self._is_ending = False
            thread = threading.Thread(target=self._run, name="store-checkpoints", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # there may be no more threads
                self.result = Moved(0.0, 0, is_all=False)
                _warn(self._path, error)
                return
            self._thread = thread
        self._idle.clear()
        self._orders.release()

    def stop(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            self._is_ending = True
            self._orders.release()
            thread.join()
            self.result = None
            self._idle.set()
            self._orders = threading.Semaphore(0)

    def _run(self) -> None:
        connection: apsw.Connection | None = None
        orders = self._orders
        while orders.acquire() and not self._is_ending:
            begun = time.perf_counter()
            self.result = Moved(0.0, 0, is_all=False)
            try:
                connection = connection or open_writer(self._path)
                self.result = _move(connection, self._path)
            except (*DISK_ERRORS, StoreUnavailable) as error:
                self.result = Moved(time.perf_counter() - begun, 0, is_all=False)
                _warn(self._path, error)
            except Exception:  # the top of a thread: the next attempt may do better
                log.exception("the write-ahead log could not be moved into %s", self._path)
            finally:
                self._idle.set()
        if connection is not None:
            with contextlib.suppress(*DISK_ERRORS):
                connection.close(True)


def _move(connection: apsw.Connection, path: Path) -> Moved:
    """Waits for nobody: what somebody who reads an old state still needs stays in the log."""
    begun, in_log, moved = time.perf_counter(), -1, 0
    try:
        in_log, moved = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    except DISK_ERRORS as error:
        _warn(path, error)
    return Moved(time.perf_counter() - begun, moved, is_all=in_log == moved)


def _warn(path: Path, error: Exception) -> None:
    log.warning("the write-ahead log could not be moved into %s: %s", path, error)
