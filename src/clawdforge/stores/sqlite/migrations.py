"""Forward-only migrations: numbered .sql files, each applied in one transaction and recorded in a table."""

from pathlib import Path

import apsw

from clawdforge.core.model import Clock
from clawdforge.stores.sqlite.queries import SQL
from clawdforge.wire.errors import StoreUnavailable

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
    """Bring the database up to date with this program. Returns its version then."""
    steps = list_migrations(folder)
    current = _read_version(connection)
    if current > len(steps):
        raise StoreUnavailable(
            f"the database has schema version {current}, but this program only knows {len(steps)}: it was"
            " written by a newer clawdforge; install that version, or choose another folder with --data-dir"
        )
    for number, path in steps[current:]:
        with connection:  # one transaction: all of it or nothing
            connection.execute(MIGRATIONS_TABLE)
            connection.execute(path.read_text("utf-8"))
            connection.execute(
                "INSERT INTO schema_migrations VALUES (?, ?, ?)", (number, path.stem, clock.now())
            )
            connection.pragma("user_version", number)
    return len(steps)


def _read_version(connection: apsw.Connection) -> int:
    there = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'schema_migrations'").fetchone()
    if there is None:
        return 0
    row = connection.execute("SELECT coalesce(max(version), 0) FROM schema_migrations").fetchone()
    return int(row[0]) if row else 0
