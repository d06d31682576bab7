"""A new database begins with the whole schema at once, and is what the migrations make one after another."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.stores.sqlite.migrations import WHOLE, migrate, render_schema
from clawdforge.stores.sqlite.queries import SQL
from clawdforge.wire.errors import StoreUnavailable

UPDATE = os.environ.get("CLAWDFORGE_TEST_UPDATE_GOLDEN") == "1"


@pytest.fixture
def steps(tmp_path: Path) -> Path:
    """The migrations without the schema that they make."""
    folder = tmp_path / "steps"
    folder.mkdir()
    for path in (SQL / "migrations").glob("*.sql"):
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


@contextlib.contextmanager
def database(path: Path) -> Iterator[apsw.Connection]:
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        yield connection


def contents(connection: apsw.Connection) -> dict[str, object]:
    """The schema to the letter, and the rows of every table."""
    schema = connection.execute(
        "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY rowid"
    ).fetchall()
    found: dict[str, object] = {"schema": schema, "version": connection.pragma("user_version")}
    for kind, name, _, _ in schema:
        if kind == "table":
            rows = connection.execute(f'SELECT * FROM "{name}"').fetchall()  # noqa: S608 - a name of our own
            found[str(name)] = [row[:2] for row in rows] if name == "schema_migrations" else rows
    return found


def test_the_schema_is_what_the_migrations_make() -> None:
    made = render_schema(SystemClock())
    if UPDATE:
        (SQL / WHOLE).write_text(made, "utf-8")
    assert (SQL / WHOLE).read_text("utf-8") == made, "run ./scripts/golden and read the diff"


def test_a_new_database_is_the_same_by_either_way(steps: Path, tmp_path: Path) -> None:
    with database(tmp_path / "whole.db") as whole, database(tmp_path / "steps.db") as one_by_one:
        assert migrate(whole, SystemClock()) == migrate(one_by_one, SystemClock(), steps)
        assert contents(whole) == contents(one_by_one)
        assert migrate(whole, SystemClock(), steps) == migrate(one_by_one, SystemClock())


def test_what_somebody_else_had_in_a_file_stays(tmp_path: Path) -> None:
    with database(tmp_path / "x.db") as connection:
        connection.execute("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)")
        migrate(connection, SystemClock())
        assert connection.execute("SELECT x FROM theirs").fetchall() == [(1,)]
        migrate(connection, SystemClock())


@pytest.mark.parametrize(("kind", "name"), [("INDEX", "tokens_of_app"), ("TRIGGER", "messages_added")])
def test_a_part_that_is_missing_is_noticed_at_the_next_start(tmp_path: Path, kind: str, name: str) -> None:
    with database(tmp_path / "x.db") as connection:
        migrate(connection, SystemClock())
        connection.execute(f"DROP {kind} {name}")
        with pytest.raises(StoreUnavailable, match=name):
            migrate(connection, SystemClock())
