"""`doctor --deep` on folders that are damaged or were moved: it tells what is wrong, and fails on nothing."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.models.rows import SessionRow
from clawdforge.stores import open_store
from clawdforge.stores.sqlite.snapshot import FILE
from clawdforge.upkeep.deep import examine_deep
from clawdforge.upkeep.doctor import Finding


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    """A folder with a session, all of it in the database file itself."""
    folder = tmp_path / "data"
    store = await open_store(folder, SystemClock())
    session = SessionRow(
        app_name="alpha", session_id="s1", agent="demo", cwd="/w", created_at=1, updated_at=1
    )
    await store.write("alpha", lambda tx: tx.add_session(session))
    await store.close()
    with closing(sqlite3.connect(folder / FILE)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return folder


def examine(data: Path, *, repair: bool = False) -> list[Finding]:
    return [one for one in examine_deep(data, SystemClock(), repair=repair) if one.level != "ok"]


def add_upload(data: Path, app: str, token: str) -> None:
    row = "(app_name, file_token, name, size, created_at, path) VALUES (?, ?, 'n', 5, 1, ?)"
    with closing(sqlite3.connect(data / FILE)) as database, database:
        database.execute(f"INSERT INTO files {row}", [app, token, f"{data}/files/{app}/{token}"])


def overwrite_page(data: Path, number: int) -> None:
    with (data / FILE).open("r+b") as file:
        size = int.from_bytes(file.read(18)[16:], "big")
        file.seek(size * (number - 1))
        file.write(b"\xa5" * size)


def root_of(data: Path, name: str) -> int:
    with closing(sqlite3.connect(data / FILE)) as database:
        (page,) = database.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", [name]).fetchone()
    return int(page)


@pytest.mark.parametrize("repair", [False, True])
def test_a_damaged_header_is_a_finding(data: Path, *, repair: bool) -> None:
    with (data / FILE).open("r+b") as file:
        file.write(b"\xa5" * 100)
    (found,) = examine(data, repair=repair)
    assert (found.level, found.about) == ("bad", "database")
    assert "clawdforge restore" in found.advice


@pytest.mark.parametrize("repair", [False, True])
@pytest.mark.parametrize(
    ("table", "about"),
    [("sessions", "sessions"), ("session_events", "audit"), ("files", "files")],
)
def test_a_damaged_table_is_a_finding_and_the_rest_is_read(
    data: Path, table: str, about: str, *, repair: bool
) -> None:
    overwrite_page(data, root_of(data, table))
    found = examine(data, repair=repair)
    assert about in {one.about for one in found}
    assert {(one.level, bool(one.advice)) for one in found} == {("bad", True)}
    every = {one.about for one in examine_deep(data, SystemClock())}
    assert {"sessions", "audit"} <= every


def test_a_table_that_is_missing_is_a_finding(data: Path) -> None:
    with closing(sqlite3.connect(data / FILE)) as database, database:
        database.execute("DROP TABLE session_events")
    (found,) = examine(data)
    assert (found.level, found.about) == ("bad", "audit")


@pytest.mark.parametrize("folder", ["files", "files/.unsettled"])
def test_an_upload_is_found_where_the_folder_is_now(data: Path, folder: str) -> None:
    """Before the next start the database names the old place, and may name a file that is still pending."""
    add_upload(data, "files", "t1")
    moved = data.rename(data.with_name("moved"))
    (place := moved / folder / "files").mkdir(parents=True)
    (place / "t1").write_bytes(b"words")
    assert examine(moved) == []
    (place / "t1").write_bytes(b"word")
    assert [one.about for one in examine(moved)] == ["files"]


def change(data: Path, sql: str) -> None:
    with closing(sqlite3.connect(data / FILE)) as database, database:
        database.executescript(sql)


WRONG_COUNTS = {
    "a session counts too much": "UPDATE session_bytes SET events = events + 5",
    "a session counts too little": "UPDATE session_bytes SET messages = messages - 5",
    "a session counts nothing": "DELETE FROM session_bytes",
    "an app counts too much": "UPDATE app_bytes SET uploads = 999",
    "an app counts nothing": "INSERT INTO runs VALUES ('r', 'beta', NULL, 'p', 1, 'end', 1, 1, NULL);"
    " DELETE FROM app_bytes",
}


@pytest.mark.parametrize("sql", WRONG_COUNTS.values(), ids=WRONG_COUNTS)
def test_bytes_that_are_counted_wrong_are_found_and_counted_anew(data: Path, sql: str) -> None:
    assert examine(data) == []
    change(data, sql)
    assert {(one.level, one.about) for one in examine(data)} == {("bad", "disk")}
    assert "doctor --repair" in examine(data)[0].advice
    assert examine(data, repair=True) == []
    assert examine(data) == []


def test_bytes_of_a_session_that_is_gone_are_forgotten(data: Path) -> None:
    change(data, "INSERT INTO session_bytes (session_id, app_name, homes) VALUES ('gone', 'alpha', 70)")
    assert [one.about for one in examine(data)] == ["disk"]
    assert examine(data, repair=True) == []
    assert examine(data) == []
    with closing(sqlite3.connect(data / FILE)) as database:
        assert database.execute("SELECT session_id FROM session_bytes").fetchall() == [("s1",)]


def test_folders_are_measured_anew(data: Path) -> None:
    (data / "homes" / "s1").mkdir(parents=True)
    (data / "homes" / "s1" / "memory").write_bytes(b"x" * 100_000)
    texts = [one.text for one in examine_deep(data, SystemClock())]
    assert "1 sessions have folders that changed since they were measured" in texts
    examine(data, repair=True)
    with closing(sqlite3.connect(data / FILE)) as database:
        ((session,),) = database.execute("SELECT homes FROM session_bytes").fetchall()
        ((app,),) = database.execute("SELECT homes FROM app_bytes").fetchall()
    assert session == app >= 100_000
