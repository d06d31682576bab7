"""Connections to the SQLite file: opening them, running statements, and which errors come from the disk."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

import apsw

from clawdforge.stores.sqlite.lasting import Lasting
from clawdforge.stores.sqlite.packs import unpack
from clawdforge.stores.sqlite.queries import Queries
from clawdforge.stores.sqlite.rows import Value
from clawdforge.stores.sqlite.statements import NewEvents
from clawdforge.wire.errors import StoreUnavailable

DISK_ERRORS: Final = (
    apsw.IOError,
    apsw.FullError,
    apsw.CantOpenError,
    apsw.ReadOnlyError,
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.PermissionsError,
    apsw.ProtocolError,
    apsw.NoMemError,
    apsw.BusyError,
    apsw.LockedError,
    apsw.ConnectionClosedError,
)
"""Errors of the store itself. Any other SQLite error is the fault of the statement that caused it."""

DAMAGE: Final = (*DISK_ERRORS, apsw.SQLError)
"""What a statement that is right raises on a damaged file: a part of the schema may be missing as well."""

ADD_EVENT: Final = (
    "INSERT INTO events (session_id, turn, type, by_agent, seq, data, compact) VALUES (?, ?, ?, ?, ?, ?, 1)"
)
ADD_EVENTS: Final = (
    "INSERT INTO events (session_id, turn, type, by_agent, seq, data, compact)"
    " SELECT ?, ?, ?, ?, ? + rowid, value, 1 FROM carray(?)"
)
FEW_EVENTS: Final = 8
RUN_BYTES: Final = 1 << 20  # SQLite copies what one statement adds before it adds it
WRITER_PATIENCE_MS: Final = 5000  # a person may hold the write lock with plain SQL for a while
READER_PATIENCE_MS: Final = 250  # reads run in the event loop
READ_PACKS: Final = 16  # are kept as they were read, 4 MiB at most: who follows takes many pages out of one
WAL_LIMIT_BYTES: Final = 64 * 1024 * 1024
PAGE_BYTES: Final = 1024
"""Of a new file. A page is written whole, whatever has changed in it, and a turn changes a few bytes each in
some forty of them. A file that was made with larger ones keeps them."""


class Db:
    """One connection and the named statements to run on it."""

    def __init__(self, connection: apsw.Connection, queries: Queries) -> None:
        self.connection = connection
        self.queries = queries
        self.unpack = lru_cache(READ_PACKS)(unpack)
        self.lasting = Lasting()
        self._cursor = connection.cursor()

    def begin(self) -> None:
        """Be the only one that writes."""
        self.connection.execute("BEGIN IMMEDIATE")
        ((version,),) = self.rows("PRAGMA data_version", {})
        self.lasting.begin(version)

    def undo(self, sql: str) -> None:
        """Roll back what was written, or a part of it."""
        self.connection.execute(sql)
        self.lasting.forget()

    def rows(
        self, sql: str, params: dict[str, Value], fits: Callable[[tuple[Any, ...]], bool] | None = None
    ) -> list[tuple[Any, ...]]:
        """The rows of a query; with `fits`, those before the first that does not.

        No query outlives the call: it would keep the connection in its old snapshot. So all its rows are
        taken, or its cursor is closed. A value that SQLite cannot hold (a lone surrogate, a huge number)
        matches no row.
        """
        cursor = self._cursor if fits is None else self.connection.cursor()
        try:
            cursor.execute(sql, params)
            return cursor.fetchall() if fits is None else list(takewhile(fits, cursor))
        except (UnicodeEncodeError, OverflowError):
            return []
        finally:
            if fits is not None:
                cursor.close(True)

    def row(self, sql: str, params: dict[str, Value]) -> tuple[Any, ...] | None:
        """The first row of a query that finds few."""
        found = self.rows(sql, params)
        return found[0] if found else None

    def run(self, sql: str, params: dict[str, Value]) -> int:
        """Run a statement. Returns how many rows it changed, not counting those that triggers changed."""
        self.connection.execute(sql, params)
        return self.connection.changes()

    def run_many(self, sql: str, params: Sequence[Mapping[str, Value]]) -> None:
        self.connection.executemany(sql, params)

    def add_events(self, runs: Sequence[NewEvents]) -> None:
        """Few are one statement. Else a run is one, which takes half the time and lets other threads run."""
        count = sum([len(run.data) for run in runs])
        if count <= FEW_EVENTS:
            self.connection.execute(_add_few(count), _flatten(runs))
            return
        for session_id, first, turn, kind, by_agent, data in runs:
            named = (session_id, turn, kind, by_agent)
            if len(data) == 1 or sum(map(len, data)) > RUN_BYTES:
                rows = ((*named, seq, each) for seq, each in enumerate(data, first))
                self.connection.executemany(ADD_EVENT, rows)
            else:
                array = apsw.carray(tuple(data))
                self.connection.execute(ADD_EVENTS, (*named, first - 1, array))


@lru_cache(FEW_EVENTS)
def _add_few(count: int) -> str:
    head, _, row = ADD_EVENT.partition(" VALUES ")
    return f"{head} VALUES {', '.join([row] * count)}"


def _flatten(runs: Sequence[NewEvents]) -> list[Value]:
    found: list[Value] = []
    for session_id, first, turn, kind, by_agent, data in runs:
        for seq, each in enumerate(data, first):
            found += (session_id, turn, kind, by_agent, seq, each)
    return found


def open_writer(path: Path) -> apsw.Connection:
    """Open a connection that writes or checkpoints; only one of them writes. The file must exist."""
    connection = _open(path, apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.set_busy_timeout(WRITER_PATIENCE_MS)
        connection.pragma("page_size", PAGE_BYTES)  # this and the next only say something to a new file
        connection.pragma("auto_vacuum", "incremental")
        _require_wal(connection)
        connection.pragma("synchronous", "full")
        connection.pragma("journal_size_limit", WAL_LIMIT_BYTES)
        connection.pragma("temp_store", "memory")
        connection.pragma("cache_size", -32_768)
    except BaseException:
        connection.close(True)
        raise
    return connection


def _open(path: Path, flags: int) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=flags, statementcachesize=256)
    # Else SQLite prepares a statement anew whenever a bound limit or id changes, since another plan might
    # suit that value better. That took ten times as long as the statement, and every plan is fixed here.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    return connection


def _require_wal(connection: apsw.Connection) -> None:
    mode = connection.pragma("journal_mode", "wal")
    if mode != "wal":
        raise StoreUnavailable(
            f"{connection.filename} cannot use a write-ahead log (its mode is {mode}); "
            "put the data folder on a local disk with --data-dir"
        )


def open_reader(path: Path) -> apsw.Connection:
    connection = _open(path, apsw.SQLITE_OPEN_READONLY)
    try:
        connection.set_busy_timeout(READER_PATIENCE_MS)
        connection.pragma("temp_store", "memory")
        connection.pragma("cache_size", -32_768)
    except BaseException:
        connection.close(True)
        raise
    return connection
