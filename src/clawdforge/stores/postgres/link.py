"""One connection to Postgres, for one thread at a time, whose calls return when the answer is there.

Work is a plain function, so it cannot await. Each connection has an event loop of its own, which runs only
while a call waits for its answer.
"""

import asyncio
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import asyncpg

from clawdforge.stores.postgres.call_loop import CallLoop

LOST: Final = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.InsufficientResourcesError,
    asyncpg.OperatorInterventionError,
    asyncpg.PostgresSystemError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.InsufficientPrivilegeError,
    asyncpg.DuplicatePreparedStatementError,  # these two, where a pooler gives out a connection to several
    asyncpg.InvalidSQLStatementNameError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    OSError,
    TimeoutError,
)
"""Errors of the connection or of the server. Any other is the fault of the statement that caused it."""

ALL_ERRORS: Final = (*LOST, asyncpg.PostgresError)

Read: TypeAlias = Callable[[tuple[Any, ...]], tuple[Any, ...]]
PATIENCE_SECS: Final = 30.0
PAUSE_SECS: Final = 30.0
ROWS_AT_ONCE: Final = 64
LONGEST_KEPT: Final = 4096
"""Statements of many jobs are longer, and hardly two of them are the same: none is kept for the next."""
SETTINGS: Final = {
    "application_name": "clawdforge",
    "jit": "off",  # it takes longer than any statement here
    "synchronous_commit": "on",
    "default_transaction_isolation": "read committed",  # what waited for the lock sees what was committed
    # A machine that is gone says nothing: Postgres is to notice it, and to let the next server in.
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
UNREADABLE: Final = (
    "the address cannot be read; write special characters of the password as in %2F, and the port as a number"
)


def describe(error: BaseException) -> str:
    """In one line: hints of the driver would follow."""
    return str(error).partition("\n")[0] or type(error).__name__


async def connect(
    url: str,
    patience: float | None = PATIENCE_SECS,
    pause: float = PAUSE_SECS,
    settings: Mapping[str, str] = SETTINGS,
) -> "asyncpg.Connection":
    """`patience` is how long a statement may take; without one, as long as it takes.

    After a `pause` of so many seconds between two statements, Postgres ends a transaction and the connection.
    """
    try:
        return await asyncpg.connect(
            url,
            timeout=PATIENCE_SECS,
            command_timeout=patience,
            statement_cache_size=1024,
            max_cached_statement_lifetime=0,  # what it plans anew is left to Postgres
            max_cacheable_statement_size=LONGEST_KEPT,
            server_settings={
                **settings,
                "idle_in_transaction_session_timeout": f"{round(pause * 1000)}ms",
            },
        )
    except asyncpg.PostgresError as error:  # whatever it is, nobody can be reached
        raise ConnectionError(str(error)) from error
    except ssl.SSLError:
        raise
    except ValueError:  # its words may hold a part of the password
        raise ConnectionError(UNREADABLE) from None


class Link:
    def __init__(
        self,
        url: str,
        patience: float | None = PATIENCE_SECS,
        *,
        pause: float = PAUSE_SECS,
        settings: Mapping[str, str] = SETTINGS,
    ) -> None:
        self._loop = CallLoop()
        try:
            self._connection = self._loop.run_until_complete(connect(url, patience, pause, settings))
        except BaseException:
            self._loop.close()
            raise

    @property
    def server_version(self) -> tuple[int, int]:
        version = self._connection.get_server_version()
        return version.major, version.minor

    @property
    def backend(self) -> int:
        """The process of Postgres at the other end."""
        number: int = self._connection.get_server_pid()
        return number

    def fetch(self, sql: str, args: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self._loop.call(self._connection.fetch(sql, *args))]

    def fetch_while(
        self, sql: str, args: Sequence[Any], read: Read, fits: Callable[[tuple[Any, ...]], bool]
    ) -> list[tuple[Any, ...]]:
        """The rows, as they are read, before the first that does not fit; few more than those are sent."""
        return self._loop.run_whole(self._fetch_while(sql, args, read, fits))

    async def _fetch_while(
        self, sql: str, args: Sequence[Any], read: Read, fits: Callable[[tuple[Any, ...]], bool]
    ) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        cursor = await self._connection.cursor(sql, *args)
        while rows := await cursor.fetch(ROWS_AT_ONCE):
            for row in map(read, map(tuple, rows)):
                if not fits(row):
                    return found
                found.append(row)
        return found

    def fetch_parts(self, sql: str, size: int, see: Callable[[list[tuple[Any, ...]]], None]) -> None:
        """All rows, some at a time."""

        async def fetch() -> None:
            cursor = await self._connection.cursor(sql)
            while rows := await cursor.fetch(size):
                see([tuple(row) for row in rows])

        self._loop.run_whole(fetch())

    def run(self, sql: str, args: Sequence[Any] = ()) -> int:
        """How many rows it changed."""
        status: str = self._loop.call(self._connection.execute(sql, *args))
        count = status.rpartition(" ")[2]
        return int(count) if count.isdigit() else 0

    def run_many(self, sql: str, args: Sequence[Sequence[Any]]) -> None:
        self._loop.run_whole(self._connection.executemany(sql, args))

    def copy(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Add many rows at once."""
        copying = self._connection.copy_records_to_table(table, columns=list(columns), records=rows)
        self._loop.run_whole(copying)

    def close(self) -> None:
        """End it at once; an open transaction is rolled back by the server."""
        self._connection.terminate()
        self._loop.run_until_complete(asyncio.sleep(0))  # lets the socket be closed
        self._loop.close()
