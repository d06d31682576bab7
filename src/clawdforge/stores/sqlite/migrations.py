"""Forward-only migrations: numbered .sql files, applied in one transaction and recorded in a table."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import apsw

from clawdforge.core.clock import Clock
from clawdforge.stores.sqlite.queries import SQL
from clawdforge.stores.sqlite.snapshot import copy_database
from clawdforge.wire.errors import StoreUnavailable

BEFORE: Final = ".before-"
"""Between the name of the database and the number of the migration before which a copy of it was made."""
MIGRATIONS_TABLE = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    version    INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    applied_at INTEGER NOT NULL
)
"""


def list_migrations(folder: Path = SQL / "migrations") -> list[tuple[int, Path]]:
    """Number and file of every migration, rising from 1 without gaps."""
    found = sorted((int(path.name.split("_")[0]), path) for path in folder.glob("*.sql"))
    if [number for number, _ in found] != list(range(1, len(found) + 1)):
        raise ValueError(f"the migrations in {folder} are not numbered 1, 2, 3, …")
    return found


def migrate(connection: apsw.Connection, clock: Clock, folder: Path = SQL / "migrations") -> int:
    """Bring the database up to date with this program. Returns its version then.

    A copy of it as it was is kept beside it, since no migration can be taken back.
    """
    steps = list_migrations(folder)
    current = _read_version(connection)
    if current > len(steps):
        raise StoreUnavailable(
            f"the database has schema version {current}, but this program only knows {len(steps)}: it was"
            " written by a newer clawdforge; install that version, or choose another folder with --data-dir"
        )
    _check_schema(connection, clock, steps[:current])
    if 0 < current < len(steps):
        _keep_copy(Path(connection.filename), current + 1)
    with connection:  # one transaction: all of it or nothing
        _apply(connection, clock, steps[current:])
    return len(steps)


def _apply(connection: apsw.Connection, clock: Clock, steps: Sequence[tuple[int, Path]]) -> None:
    for number, path in steps:
        connection.execute(MIGRATIONS_TABLE)
        connection.execute(path.read_text("utf-8"))
        connection.execute("INSERT INTO schema_migrations VALUES (?, ?, ?)", (number, path.stem, clock.now()))
        connection.pragma("user_version", number)


def _check_schema(connection: apsw.Connection, clock: Clock, steps: Sequence[tuple[int, Path]]) -> None:
    """A number says what the schema should be; this compares what it is. What others have added is theirs."""
    if not steps:
        return
    with contextlib.closing(apsw.Connection(":memory:")) as fresh:
        _apply(fresh, clock, steps)
        wanted = _read_schema(fresh)
    found = _read_schema(connection)
    wrong = sorted(name for name, sql in wanted.items() if found.get(name) != sql)
    if wrong:
        raise StoreUnavailable(
            f"{connection.filename} says that it has schema version {len(steps)}, but these parts of it are"
            f" missing or different: {', '.join(wrong[:5])}. Restore a backup with `clawdforge restore`, or"
            " choose another folder with --data-dir"
        )


def _read_schema(connection: apsw.Connection) -> dict[str, str]:
    """What every table, index and trigger is made of, by name; the parts of a full-text index are its own."""
    sql = "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL"
    return {name: " ".join(text.split()) for name, text in connection.execute(sql)}


def _keep_copy(path: Path, number: int) -> None:
    """Keep the database as it is before migration `number`, and none from before an earlier one."""
    kept = path.with_name(f"{path.name}{BEFORE}{number:04}")
    copy_database(path, kept)
    for older in path.parent.glob(f"{path.name}{BEFORE}*"):
        if older != kept:
            older.unlink()


def _read_version(connection: apsw.Connection) -> int:
    there = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'schema_migrations'").fetchone()
    if there is None:
        return 0
    row = connection.execute("SELECT coalesce(max(version), 0) FROM schema_migrations").fetchone()
    return int(row[0]) if row else 0
