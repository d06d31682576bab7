"""A connection that only reads: one consistent state at a time, opened when it is needed."""

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import apsw

from clawdforge.stores.sqlite.connection import DISK_ERRORS, Db, open_reader
from clawdforge.stores.sqlite.queries import Queries
from clawdforge.wire.errors import SessionDamaged, Stopping, StoreUnavailable

T = TypeVar("T")


class Reader:
    """For any thread, one of them at a time: nothing that reads pauses in the middle, so one serves many."""

    def __init__(self, path: Path, queries: Queries) -> None:
        self._path = path
        self._queries = queries
        self._lock = threading.Lock()
        self._is_closed = False
        self.db: Db | None = None

    def read(self, work: Callable[[Db], T]) -> T:
        """Run work on one consistent state."""
        with self._lock:
            if self._is_closed:
                raise Stopping
            try:
                return self._read(work)
            except apsw.CorruptError as error:
                self._forget()
                raise SessionDamaged from error
            except DISK_ERRORS as error:
                self._forget()
                raise StoreUnavailable(
                    f"the store cannot be read ({error}); try again later", retry_after=1.0
                ) from error

    def close(self) -> None:
        """Waits for whoever reads in another thread."""
        with self._lock:
            self._is_closed = True
            self._forget()

    def _read(self, work: Callable[[Db], T]) -> T:
        if self.db is None:
            self.db = Db(open_reader(self._path), self._queries)
        connection = self.db.connection
        connection.execute("BEGIN")
        try:
            return work(self.db)
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if connection.txn_state() != apsw.SQLITE_TXN_NONE:
                self._forget()  # somebody holds a cursor: it would stay in this state for ever

    def _forget(self) -> None:
        db, self.db = self.db, None
        if db is not None:
            with contextlib.suppress(*DISK_ERRORS):
                db.connection.close(True)
