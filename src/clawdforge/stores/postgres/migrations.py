"""Brings a Postgres database up to date: numbered .sql files, in one transaction, by one server at a time."""

from pathlib import Path
from typing import Final

from clawdforge.core.clock import Clock
from clawdforge.stores.postgres.link import Link
from clawdforge.stores.postgres.queries import SQL
from clawdforge.stores.sqlite.migrations import list_migrations
from clawdforge.wire.errors import StoreUnavailable

OLDEST: Final = 17
"""The first Postgres that knows the letters of all languages by itself (`pg_c_utf8`)."""
BEGIN: Final = "BEGIN ISOLATION LEVEL READ COMMITTED"  # who waited sees what was committed meanwhile
MAKE: Final = (
    BEGIN,
    "SELECT pg_advisory_xact_lock(4710423073)",  # two that make the same table at once fail in many ways
    'CREATE TABLE IF NOT EXISTS schema_lock ("only" bigint PRIMARY KEY CHECK ("only" = 1))',
    'INSERT INTO schema_lock ("only") VALUES (1) ON CONFLICT DO NOTHING',
    (
        "CREATE TABLE IF NOT EXISTS schema_migrations"
        " (version bigint PRIMARY KEY, name text NOT NULL, applied_at bigint NOT NULL)"
    ),
    "COMMIT",
)
LACKING: Final = "SELECT to_regclass('schema_lock') IS NULL OR to_regclass('schema_migrations') IS NULL"
HOLD: Final = 'SELECT 1 FROM schema_lock WHERE "only" = 1 FOR UPDATE'
EMPTY: Final = (
    "the database is empty, but the data folder holds what agents remember of {count} sessions; name the"
    " database that belongs to the folder, or choose an empty folder with --data-dir"
)


def migrate(link: Link, clock: Clock, remembered: int = 0, folder: Path = SQL / "migrations") -> int:
    """Returns the version then. Whoever comes meanwhile waits for the row, and finds the work done.

    With `remembered`, which is how many sessions have left folders on this machine, nothing is made in an
    empty database: it is the wrong one.

    When this raises, the connection is to be closed, which ends the transaction.
    """
    check_server(link)
    steps = list_migrations(folder)
    if remembered and link.fetch("SELECT to_regclass('schema_migrations') IS NULL") == [(True,)]:
        raise StoreUnavailable(EMPTY.format(count=remembered))
    if link.fetch(LACKING) == [(True,)]:  # else its user need not be one who may make tables
        for statement in MAKE:
            link.run(statement)
    link.run(BEGIN)
    link.fetch(HOLD)
    ((current,),) = link.fetch("SELECT coalesce(max(version), 0) FROM schema_migrations")
    if current > len(steps):
        raise StoreUnavailable(
            f"the database has schema version {current}, but this program only knows {len(steps)}: it was"
            " written by a newer clawdforge; install that version, or name another database"
        )
    if not current and remembered:
        raise StoreUnavailable(EMPTY.format(count=remembered))
    if steps[current:]:  # nobody writes meanwhile, nor between what they have read and what they write
        link.run("SELECT pg_advisory_xact_lock(4710423071)")
    for number, path in steps[current:]:
        link.run(path.read_text("utf-8"))
        link.run("INSERT INTO schema_migrations VALUES ($1, $2, $3)", (number, path.stem, clock.now()))
    link.run("COMMIT")
    return len(steps)


def check_server(link: Link) -> None:
    """Raises StoreUnavailable where no tables can be made."""
    major, _ = link.server_version
    if major < OLDEST:
        raise StoreUnavailable(
            f"this is Postgres {major}, but {OLDEST} or newer is needed; upgrade it, or name another database"
        )
    ((encoding,),) = link.fetch("SHOW server_encoding")
    if encoding != "UTF8":
        raise StoreUnavailable(
            f"the database has the encoding {encoding}; make another with `CREATE DATABASE … ENCODING 'UTF8'`"
        )
