"""The data folder and its file: who may look, who holds it, which schema it has, how it is copied."""

import asyncio
import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.models.events import draft
from clawdforge.core.models.rows import SessionRow
from clawdforge.folder_lock import NAME, FolderLock, FolderTaken, read_holder
from clawdforge.stores import open_store
from clawdforge.stores.sqlite.migrations import list_migrations, migrate
from clawdforge.stores.sqlite.queries import Queries
from clawdforge.wire.errors import StoreUnavailable
from clawdforge.wire.event import EventType


@pytest.fixture(params=[0o000, 0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.usefixtures("umask")
async def test_only_the_owner_may_look(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "data"
    lock = FolderLock.acquire(folder, "http://127.0.0.1:1", 1)
    store = await open_store(folder, SystemClock())
    await store.write_system(lambda tx: tx.audit_system("a", "e", 1, {}))
    await store.backup(folder / "copy.db")
    assert mode(folder) == 0o700
    assert {path.name: mode(path) for path in folder.iterdir()} == dict.fromkeys(
        [NAME, "forge.db", "forge.db-wal", "forge.db-shm", "copy.db"], 0o600
    )
    await store.close()
    lock.release()


async def test_an_open_folder_is_tightened(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)
    (folder / "forge.db").touch(mode=0o644)
    await (await open_store(folder, SystemClock())).close()
    assert (mode(folder), mode(folder / "forge.db")) == (0o700, 0o600)


async def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable, match="data folder"):
        await open_store(tmp_path / "file", SystemClock())


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "forge.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(StoreUnavailable, match=r"forge\.db"):
        await open_store(tmp_path, SystemClock())
    assert (tmp_path / "forge.db").read_bytes() == b"not a database at all" * 100


def test_a_second_server_is_told_who_holds_the_folder(tmp_path: Path) -> None:
    lock = FolderLock.acquire(tmp_path, "http://127.0.0.1:0", 4711)
    lock.announce("http://127.0.0.1:8800")
    assert read_holder(tmp_path) == {"url": "http://127.0.0.1:8800", "pid": 4711}
    with pytest.raises(FolderTaken, match=r"http://127\.0\.0\.1:8800 \(pid 4711\).*--data-dir"):
        FolderLock.acquire(tmp_path, "http://127.0.0.1:9", 2)
    assert read_holder(tmp_path) == {"url": "http://127.0.0.1:8800", "pid": 4711}
    lock.release()
    lock.release()
    assert read_holder(tmp_path) is None
    FolderLock.acquire(tmp_path, "http://127.0.0.1:9", 2).release()


def test_nobody_holds_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert read_holder(tmp_path / "missing") is None


def test_a_killed_holder_leaves_the_folder_free(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from clawdforge.folder_lock import FolderLock\n"
        "lock = FolderLock.acquire(Path(sys.argv[1]), 'http://127.0.0.1:7', 7); print('held', flush=True)\n"
        "sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"held\n"
        assert read_holder(tmp_path) == {"url": "http://127.0.0.1:7", "pid": 7}
        program.kill()
        program.wait()
    assert read_holder(tmp_path) is None
    FolderLock.acquire(tmp_path, "http://127.0.0.1:8", 8).release()


async def test_somebody_who_only_looks_does_not_keep_a_server_out(tmp_path: Path) -> None:
    (tmp_path / NAME).touch()
    handle = os.open(tmp_path / NAME, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_SH)
    waiting = asyncio.create_task(asyncio.to_thread(FolderLock.acquire, tmp_path, "http://x", 1))
    await asyncio.sleep(0)
    os.close(handle)
    (await waiting).release()


async def test_migrations_are_noted_and_run_once(tmp_path: Path) -> None:
    for _ in range(2):
        store = await open_store(tmp_path, SystemClock())
        await store.close()
    db = apsw.Connection(str(tmp_path / "forge.db"))
    noted = db.execute("SELECT version, name FROM schema_migrations ORDER BY version").fetchall()
    assert noted == [(number, path.stem) for number, path in list_migrations()]
    db.close()


def test_no_migration_takes_a_table_or_a_column_away(tmp_path: Path) -> None:
    """S0-04: whoever reads the database finds what was there before, by its published name."""
    steps = tmp_path / "steps"
    steps.mkdir()
    db = apsw.Connection(str(tmp_path / "x.db"))
    before: set[tuple[str, str]] = set()
    for number, path in list_migrations():
        (steps / path.name).write_text(path.read_text())
        assert migrate(db, SystemClock(), steps) == number
        now = set(db.execute("SELECT t.name, c.name FROM pragma_table_list t, pragma_table_info(t.name) c"))
        assert before <= now, path.name
        before = now
    published = {("sessions", name) for name in ("session_id", "app_name", "created_at", "closed_at", "meta")}
    assert published <= before
    assert {"sessions", "session_events", "runs"} <= {table for table, _ in before}
    db.close()


def test_a_migration_that_fails_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "0001_good.sql").write_text("CREATE TABLE a (x); INSERT INTO a VALUES (1);")
    db = apsw.Connection(str(tmp_path / "x.db"))
    assert migrate(db, SystemClock(), tmp_path) == 1
    (tmp_path / "0002_bad.sql").write_text("CREATE TABLE b (x); INSERT INTO missing VALUES (1);")
    for _ in range(2):
        with pytest.raises(apsw.SQLError, match="missing"):
            migrate(db, SystemClock(), tmp_path)
        assert db.execute("SELECT max(version) FROM schema_migrations").fetchall() == [(1,)]
        assert db.execute("SELECT name FROM sqlite_schema WHERE name = 'b'").fetchall() == []
    (tmp_path / "0002_bad.sql").write_text("ALTER TABLE a ADD COLUMN y INTEGER NOT NULL DEFAULT 7;")
    assert migrate(db, SystemClock(), tmp_path) == 2
    assert db.execute("SELECT x, y FROM a").fetchall() == [(1, 7)]
    db.close()


async def test_a_session_without_meta_was_stored_as_an_empty_object_once(tmp_path: Path) -> None:
    """S4-15: its rows were made before any later migration."""
    db = apsw.Connection(str(tmp_path / "forge.db"))
    (number, first), *_ = list_migrations()
    old = tmp_path / "old"
    old.mkdir()
    (old / first.name).write_text(first.read_text())
    assert migrate(db, SystemClock(), old) == number
    for name, meta in (("none", "{}"), ("some", '{"a":1}')):
        db.execute(
            "INSERT INTO sessions (session_id, app_name, agent, cwd, created_at, updated_at, meta)"
            " VALUES (?, 'a', 'demo', '/w', 1, 1, ?)",
            (name, meta),
        )
    db.close()
    store = await open_store(tmp_path, SystemClock())
    found = await store.read("a", lambda view: [view.session(name) for name in ("none", "some")])
    await store.close()
    assert [row.meta for row in found if row is not None] == [None, {"a": 1}]


async def test_a_newer_database_is_refused(tmp_path: Path) -> None:
    await (await open_store(tmp_path, SystemClock())).close()
    db = apsw.Connection(str(tmp_path / "forge.db"))
    db.execute("INSERT INTO schema_migrations VALUES (9999, '9999_future', 0)")
    db.close()
    with pytest.raises(StoreUnavailable, match=r"schema version 9999.*newer clawdforge"):
        await open_store(tmp_path, SystemClock())


async def test_every_field_of_a_record_is_a_column(tmp_path: Path) -> None:
    store = await open_store(tmp_path, SystemClock())
    await store.close()
    queries = Queries()
    db = apsw.Connection(str(tmp_path / "forge.db"))
    for codec in (queries.app, queries.token, queries.session, queries.turn, queries.message, queries.run,
                  queries.permission, queries.file, queries.persona, queries.audit):  # fmt: skip
        columns = {row[0] for row in db.execute("SELECT name FROM pragma_table_info(?)", (codec.table,))}
        assert set(codec.names) <= columns, codec.table
    db.close()


async def test_a_copy_made_while_writing_is_whole(tmp_path: Path) -> None:
    """S3-17."""
    store = await open_store(tmp_path / "data", SystemClock())
    row = SessionRow(app_name="a", session_id="s", agent="demo", cwd="/w", created_at=1, updated_at=1)
    await store.write("a", lambda tx: tx.add_session(row))
    event = draft(EventType.TEXT, None, 1, {"content": "x" * 20_000})
    done = asyncio.Event()

    async def keep_writing() -> None:
        while not done.is_set():
            await store.write("a", lambda tx: tx.append("s", [event] * 20))

    await store.write("a", lambda tx: tx.append("s", [event] * 1000))
    writing = asyncio.create_task(keep_writing())
    (tmp_path / "copy").mkdir()
    await store.backup(tmp_path / "copy" / "forge.db")
    done.set()
    await writing
    await store.close()
    copy = await open_store(tmp_path / "copy", SystemClock())
    assert await copy.integrity() == []
    found = await copy.read(
        "a", lambda v: (v.session("s"), v.events("s", after=0, limit=10**6, max_bytes=1 << 40))
    )
    assert found[0] is not None
    assert [event.seq for event in found[1]] == list(range(1, found[0].head + 1))
    assert found[0].head >= 1000
    await copy.close()


async def test_a_broken_file_is_reported(tmp_path: Path) -> None:
    store = await open_store(tmp_path, SystemClock())
    for number in range(200):
        await store.write_system(lambda tx, n=number: tx.audit_system("a", "e", n, {"x": "y" * 500}))  # type: ignore[misc]
    assert await store.integrity() == []
    await store.close()
    with (tmp_path / "forge.db").open("r+b") as file:
        file.seek(-30 * 4096, os.SEEK_END)
        file.write(b"\xff" * 20 * 4096)
    store = await open_store(tmp_path, SystemClock())
    assert await store.integrity() != []
    await store.close()
