"""Databases of other versions: upgraded with a copy kept, or refused in words; folders that were moved."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.stores import open_store
from clawdforge.stores.sqlite.migrations import list_migrations
from clawdforge.wire.errors import StoreUnavailable
from tests.crash.kit import Forge

DUMP = Path(__file__).parent.parent / "data" / "forge-0.3.0.sql"
LATEST = len(list_migrations())


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with a database of version 0.3.0."""
    folder = tmp_path / "old"
    folder.mkdir(mode=0o700)
    with closing(sqlite3.connect(folder / "forge.db")) as database:
        database.executescript(DUMP.read_text("utf-8").replace("@DATA@", str(folder)))
    return folder


def version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as database:
        return int(database.execute("SELECT max(version) FROM schema_migrations").fetchone()[0])


def copies(data: Path) -> list[Path]:
    return list(data.glob("forge.db.before-*"))


def change(data: Path, sql: str) -> None:
    with closing(sqlite3.connect(data / "forge.db")) as database, database:
        database.executescript(sql)


async def opened(data: Path) -> None:
    store = await open_store(data, SystemClock())
    await store.close()


async def test_a_copy_is_kept_from_before_the_upgrade(data: Path) -> None:
    before = version(data / "forge.db")
    (data / "forge.db.before-0001").write_text("of an earlier upgrade")
    await opened(data)
    assert version(data / "forge.db") == LATEST
    (kept,) = copies(data)
    assert kept.name == f"forge.db.before-{before + 1:04}"
    assert version(kept) == before
    assert kept.stat().st_mode & 0o077 == 0
    at = kept.stat().st_mtime_ns
    await opened(data)
    assert kept.stat().st_mtime_ns == at


async def test_an_upgrade_that_fails_changes_nothing(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All migrations are one transaction: a database is of one version or of another, never between."""
    before, steps = version(data / "forge.db"), list_migrations()
    broken = data / "broken.sql"
    broken.write_text("CREATE TABLE half (a); SELECT nonsense();")
    monkeypatch.setattr(
        "clawdforge.stores.sqlite.migrations.list_migrations", lambda _: [*steps, (LATEST + 1, broken)]
    )
    with pytest.raises(Exception, match="nonsense"):
        await opened(data)
    assert version(data / "forge.db") == before
    monkeypatch.undo()
    await opened(data)
    assert version(data / "forge.db") == LATEST


async def test_a_newer_database_is_refused(data: Path) -> None:
    await opened(data)
    change(data, "INSERT INTO schema_migrations VALUES (999, 'later', 1)")
    with pytest.raises(StoreUnavailable, match="newer clawdforge"):
        await opened(data)


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE sessions DROP COLUMN estimated_cost_usd",
        "DROP INDEX turns_one_active",
        "DROP TABLE permissions",
        "DROP TRIGGER turns_added",
    ],
)
async def test_a_schema_that_is_not_what_its_number_says_is_refused(data: Path, sql: str) -> None:
    """It started, and answered some requests with 500."""
    await opened(data)
    change(data, sql)
    with pytest.raises(StoreUnavailable, match="missing or different"):
        await opened(data)


async def test_what_somebody_added_is_theirs(data: Path) -> None:
    await opened(data)
    change(data, "CREATE INDEX mine ON sessions (title); CREATE TABLE notes (text)")
    await opened(data)


@pytest.mark.slow
def test_a_data_folder_can_be_moved(forge: Callable[..., Forge]) -> None:
    crash = forge()
    sessions = [crash.session() for _ in range(2)]
    for session_id in sessions:
        crash.turn(session_id, "write note.txt hello\necho first")
    upload = crash.http.post("/files", files={"file": ("a.txt", b"some words")}).json()["file_token"]
    crash.server.stop()
    old = crash.server.data_dir
    crash.server.data_dir = old.with_name("moved") / "files" / "data"
    crash.server.data_dir.parent.mkdir(parents=True)
    shutil.move(old, crash.server.data_dir)
    crash.restart()
    for session_id in sessions:
        cwd = Path(crash.http.get(f"/sessions/{session_id}").json()["cwd"])
        assert cwd.is_relative_to(crash.server.data_dir)
        assert (cwd / "note.txt").read_text() == "hello"
        crash.turn(session_id, "echo second", files=[upload])
        assert [turn["outcome"] for turn in crash.turns(session_id)] == ["completed"] * 2
    assert not old.exists()
