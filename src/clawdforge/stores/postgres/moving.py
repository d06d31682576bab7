"""Moves all rows of a SQLite file into an empty Postgres database in one transaction, and compares them.

The tables have the same names and columns in both, but for one that is a part of another in SQLite. Each row
is read from the file, written, and read back: what differs in anything is told, and nothing is kept.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import apsw

from clawdforge.core.clock import Clock
from clawdforge.stores.postgres.link import Link
from clawdforge.stores.postgres.migrations import migrate
from clawdforge.stores.postgres.texts import to_postgres
from clawdforge.stores.postgres.writer import lock_database
from clawdforge.stores.sqlite.connection import open_reader
from clawdforge.wire.errors import StoreUnavailable

AT_ONCE: Final = 500
BYTES_AT_ONCE: Final = 8 << 20
READ_AT_ONCE: Final = 50
OWN: Final = frozenset({"schema_migrations", "schema_lock"})
LONG: Final = (
    "coalesce((SELECT prompt FROM long_prompts AS long"
    " WHERE long.session_id = turns.session_id AND long.turn_index = turns.turn_index), prompt)"
)
"""A prompt that stands beside its turn in SQLite."""
COUNTS: Final = """
SELECT app_name, max(last) AS last, max(forgotten) AS forgotten FROM (
    SELECT app_name, last, forgotten FROM change_counts
    UNION ALL SELECT app_name, max(number), 0 FROM app_changes GROUP BY app_name)
GROUP BY app_name
"""
"""The last number that was given out in an app stands in SQLite where it was given."""
PARTS: Final = {"session_heads": ("sessions", {"moved_at": "updated_at"})}
"""Tables whose rows are a part of others in SQLite, and what is called otherwise there."""
COLUMNS: Final = """
SELECT table_name, column_name, data_type FROM information_schema.columns
WHERE table_schema = current_schema() AND is_generated = 'NEVER' ORDER BY table_name, ordinal_position
"""
Report: TypeAlias = Callable[[int, int | None], None]
FILLED: Final = "the database holds other sessions or apps already; name one that is empty"


class Table(NamedTuple):
    name: str
    columns: tuple[str, ...]
    kinds: tuple[str, ...]

    @property
    def listed(self) -> str:
        return ", ".join(f'"{name}"' for name in self.columns)

    @property
    def asked(self) -> str:
        """What is read of the file."""
        if self.name == "change_counts":
            return f"SELECT {self.listed} FROM ({COUNTS})"  # noqa: S608 - our own names
        source, others = PARTS.get(self.name, (self.name, {}))
        listed = ", ".join(f'"{others.get(name, name)}"' for name in self.columns)
        if self.name == "turns":
            listed = listed.replace('"prompt"', LONG)
        return f"SELECT {listed} FROM {source}"  # noqa: S608 - our own names


def move_rows(source: Path, url: str, clock: Clock, report: Report) -> int:
    """How many rows there are now. `report` is called with how many bytes were written so far.

    Nobody may write to the file meanwhile. Raises StoreUnavailable, and errors of both databases.
    """
    link = Link(url, patience=None)
    try:
        lock_database(link)
        migrate(link, clock)
        file = open_reader(source)
        try:
            count = _move_all(file, link, report)
        finally:
            file.close(True)
        link.run("SELECT pg_advisory_unlock_all()")  # the end of a connection is noticed a moment later
        return count
    finally:
        link.close()


def _move_all(file: apsw.Connection, link: Link, report: Report) -> int:
    tables = _find_tables(file, link)
    link.run("BEGIN")
    is_filled = any(link.fetch(f"SELECT 1 FROM {name} LIMIT 1") for name in ("sessions", "apps"))  # noqa: S608
    count, done = 0, 0
    for table in tables:
        for some in _compare_table(file, link, table) if is_filled else _move_table(file, link, table):
            count += len(some)
            done += sum(map(count_bytes, some))
            report(done, None)
    for table, column in link.fetch(
        "SELECT table_name, column_name FROM information_schema.columns"
        " WHERE table_schema = current_schema() AND is_identity = 'YES'"
    ):
        last = f"(SELECT coalesce(max({column}), 0) + 1 FROM {table})"  # noqa: S608 - our own names
        link.fetch(f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'), {last}, false)")
    link.run("COMMIT")
    return count


def _find_tables(file: apsw.Connection, link: Link) -> list[Table]:
    there: dict[str, dict[str, str]] = {}
    for table, column, kind in link.fetch(COLUMNS):
        there.setdefault(table, {})[column] = kind
    found: list[Table] = []
    for name in sorted(there.keys() - OWN):
        source, others = PARTS.get(name, (name, {}))
        mine = [str(row[1]) for row in file.execute(f"PRAGMA table_info({source})")]
        columns = tuple(column for column in there[name] if others.get(column, column) in mine)
        if mine:
            found.append(Table(name, columns, tuple(there[name][column] for column in columns)))
    return found


def _move_table(file: apsw.Connection, link: Link, table: Table) -> Iterator[list[tuple[Any, ...]]]:
    """Some rows after others, as they are written, and the comparison at the end.

    They come in the order in which they were made, which is that of numbers that Postgres gives by itself.
    """
    link.run(f"DELETE FROM {table.name}")  # noqa: S608 - our own names; a migration may have put rows there
    link.run(f"ALTER TABLE {table.name} DISABLE TRIGGER USER")
    written = 0
    for some in _read_file(file, table):
        link.copy(table.name, table.columns, some)
        written = _add(written, some)
        yield some
    link.run(f"ALTER TABLE {table.name} ENABLE TRIGGER USER")
    if _read_back(link, table) != written:
        raise StoreUnavailable(f"the rows of {table.name} are not the same in Postgres; nothing was kept")


def _compare_table(file: apsw.Connection, link: Link, table: Table) -> Iterator[list[tuple[Any, ...]]]:
    """Where a move was cut off right after its end, all rows are there already."""
    read = 0
    for some in _read_file(file, table):
        read = _add(read, some)
        yield some
    if _read_back(link, table) != read:
        raise StoreUnavailable(FILLED)


def _read_file(file: apsw.Connection, table: Table) -> Iterator[list[tuple[Any, ...]]]:
    """Some rows at a time: few that are large."""
    some: list[tuple[Any, ...]] = []
    size = 0
    for row in file.execute(table.asked):
        some.append(_convert(table, row))
        size += count_bytes(some[-1])
        if len(some) == AT_ONCE or size > BYTES_AT_ONCE:
            yield some
            some, size = [], 0
    if some:
        yield some


def _read_back(link: Link, table: Table) -> int:
    total = 0

    def see(some: list[tuple[Any, ...]]) -> None:
        nonlocal total
        total = _add(total, some)

    link.fetch_parts(f"SELECT {table.listed} FROM {table.name}", READ_AT_ONCE, see)  # noqa: S608 - our own names
    return total


def count_bytes(row: Sequence[Any]) -> int:
    return sum(len(value) for value in row if isinstance(value, str | bytes))


def _convert(table: Table, row: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(map(_to_kind, table.kinds, row))


def _to_kind(kind: str, value: Any) -> Any:
    """As the column has it: SQLite takes any value in any column."""
    if value is None:
        return None
    if kind == "bytea":
        return value.encode() if isinstance(value, str) else value
    if kind == "double precision":
        return float(value)
    if kind == "text":
        return to_postgres(value.decode() if isinstance(value, bytes) else str(value))
    return to_postgres(int(value))


def _add(total: int, rows: Sequence[tuple[Any, ...]]) -> int:
    """The rows in any order: a sum of what each of them is known by."""
    for row in rows:
        total += int.from_bytes(hashlib.blake2b(repr(row).encode(), digest_size=16).digest())
    return total
