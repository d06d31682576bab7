"""The log moves into the database without anybody waiting, and the file becomes small again."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any

import apsw
import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.models.events import draft
from clawdforge.core.models.rows import SessionRow
from clawdforge.core.ports import Tx
from clawdforge.stores import open_store
from clawdforge.stores.sqlite import checkpoints, connection, job_times, space
from clawdforge.stores.sqlite.store import SqliteStore
from clawdforge.wire.event import EventType

APP, SID = "alpha", "s-1"
OLD = (Path(__file__).parents[1] / "data" / "forge-0.3.0.sql").read_text("utf-8")
FOR_EVER_MS = 3_600_000
PAGE = 4096


@pytest.fixture
async def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SqliteStore]:
    for name in ("FEW_BYTES", "MANY_BYTES"):
        monkeypatch.setattr(checkpoints, name, 40_000)
    monkeypatch.setattr(connection, "WRITER_PATIENCE_MS", FOR_EVER_MS)
    monkeypatch.setattr(connection, "WAL_LIMIT_BYTES", 100_000)
    opened = await open_store(tmp_path / "data", SystemClock())
    row = SessionRow(app_name=APP, session_id=SID, agent="demo", cwd="/w", created_at=1, updated_at=1)
    await opened.write(APP, lambda tx: tx.add_session(row))
    yield opened
    await opened.close()


async def add(store: SqliteStore, size: int) -> None:
    event = draft(EventType.TEXT, None, 1, {"content": "x" * size})
    await store.write(APP, lambda tx: tx.append(SID, [event]))


async def moved(store: SqliteStore) -> None:
    """Nothing is being moved any more, and the writing thread has heard of it."""
    assert await asyncio.to_thread(store._writer.checkpoints._mover.wait, 60)
    await add(store, 1)
    await add(store, 1)  # its job begins when what comes after the last commit is over


def attempts(store: SqliteStore) -> int:
    return int(store.checkpoint_times.samples()[-1].value)


def log_bytes(store: SqliteStore) -> int:
    return store.path.with_name(store.path.name + "-wal").stat().st_size


async def test_no_commit_waits_for_a_long_reader(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint that waited for the reader would hang here: the writer is patient for an hour."""
    # Before the reader begins: the checkpoint of the session's row may still be on its way, and would rest.
    monkeypatch.setattr(checkpoints, "REST_SECS", 0.0)
    reader = apsw.Connection(str(store.path), flags=apsw.SQLITE_OPEN_READONLY)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM events").fetchall()
    async with asyncio.timeout(60):
        for _ in range(10):
            await add(store, 100_000)
            await moved(store)
    assert attempts(store) >= 5
    grown = log_bytes(store)
    assert grown > 50 * 4096
    reader.execute("ROLLBACK")
    for _ in range(3):
        await moved(store)
    assert log_bytes(store) < grown
    reader.close()


async def test_a_log_that_cannot_be_moved_is_left_alone_for_a_while(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await moved(store)
    before = attempts(store)
    monkeypatch.setattr(checkpoints, "REST_SECS", 3600.0)
    reader = apsw.Connection(str(store.path), flags=apsw.SQLITE_OPEN_READONLY)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM events").fetchall()
    async with asyncio.timeout(60):
        for _ in range(20):
            await add(store, 100_000)
            await moved(store)
    assert attempts(store) <= before + 5  # of twenty: a few may have come before the reader did
    reader.close()


@pytest.fixture
def some(tmp_path: Path) -> Iterator[tuple[apsw.Connection, checkpoints.Checkpoints]]:
    db = apsw.Connection(str(tmp_path / "some.db"))
    db.pragma("page_size", PAGE)
    db.pragma("journal_mode", "wal")
    db.wal_autocheckpoint(0)
    counted = checkpoints.Checkpoints(tmp_path / "some.db")
    counted.follow(db)
    db.execute("CREATE TABLE some (data)")
    yield db, counted
    counted.stop()
    db.close()


def fill(db: apsw.Connection, size: int) -> None:
    db.execute("INSERT INTO some VALUES (zeroblob(?))", (size,))


def test_a_log_is_moved_beside_who_writes_and_begins_anew(
    some: tuple[apsw.Connection, checkpoints.Checkpoints], tmp_path: Path
) -> None:
    db, counted = some
    fill(db, checkpoints.FEW_BYTES)
    counted.after_commit(db, jobs_wait=True)
    assert counted._mover.wait(60)
    assert (tmp_path / "some.db").stat().st_size > checkpoints.FEW_BYTES
    fill(db, 1000)
    counted.after_commit(db, jobs_wait=True)
    assert (counted._bytes < 40_000, counted._moved) == (True, 0)
    assert counted.times.samples()[-1].value == 1


def test_what_came_while_it_was_moved_is_moved_by_who_writes_once_nobody_waits(
    some: tuple[apsw.Connection, checkpoints.Checkpoints],
) -> None:
    db, counted = some
    fill(db, checkpoints.FEW_BYTES)
    found = []
    for moved, jobs_wait in ((0, True), (10, True), (10, False)):
        counted._moved = max(0, counted._bytes - checkpoints.LAST_BYTES - 1 + moved)
        counted.after_commit(db, jobs_wait=jobs_wait)
        found.append(counted.times.samples()[-1].value)
    assert found == [0, 0, 1]
    assert counted._bytes == 0


def test_who_writes_waits_only_where_the_log_is_long(
    some: tuple[apsw.Connection, checkpoints.Checkpoints], monkeypatch: pytest.MonkeyPatch
) -> None:
    db, counted = some
    waits: list[float] = []

    def wait(secs: float) -> bool:
        waits.append(secs)
        return False

    monkeypatch.setattr(counted._mover, "wait", wait)
    counted._mover._idle.clear()  # it is at work, and slow
    for size in (checkpoints.FEW_BYTES, checkpoints.LATE_BYTES):
        fill(db, size)
        counted.after_commit(db, jobs_wait=False)
    assert waits == [checkpoints.LATE_SECS]
    counted._mover._idle.set()


def test_a_long_log_is_tried_again_soon(
    some: tuple[apsw.Connection, checkpoints.Checkpoints], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody was reading during the first attempt. A second later the log may be 100 MB longer."""
    monkeypatch.setattr(checkpoints, "LATE_REST_SECS", 0.0)
    monkeypatch.setattr(checkpoints, "REST_SECS", 3600.0)
    monkeypatch.setattr(checkpoints, "LATE_BYTES", 16_000_000)
    db, counted = some
    starts: list[int] = []
    monkeypatch.setattr(counted._mover, "start", lambda: starts.append(counted._bytes))
    counted._mover.result = checkpoints.Moved(0.0, 0, is_all=False)
    for _ in range(4):
        fill(db, 6_000_000)
        counted.after_commit(db, jobs_wait=True)
    assert [size >= 16_000_000 for size in starts] == [True, True], "the first two commits let it rest"


def test_a_log_of_who_writes_much_without_a_pause_has_a_bound(
    some: tuple[apsw.Connection, checkpoints.Checkpoints], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each commit is there before the last was moved, so that the log never begins anew by itself."""
    monkeypatch.setattr(checkpoints, "LATE_BYTES", 16_000_000)
    db, counted = some

    def move_what_was_there() -> None:
        counted._mover.result = checkpoints.Moved(0.0, counted._bytes // PAGE, is_all=True)

    monkeypatch.setattr(counted._mover, "start", move_what_was_there)
    longest = 0
    for _ in range(12):
        fill(db, 6_000_000)
        longest = max(longest, counted._bytes)
        counted.after_commit(db, jobs_wait=True)
    assert 16_000_000 <= longest < 32_000_000


def test_a_machine_without_another_thread_keeps_the_log_and_tries_again(
    some: tuple[apsw.Connection, checkpoints.Checkpoints],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(checkpoints, "REST_SECS", 0.0)
    db, counted = some

    def refuse(_thread: Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(Thread, "start", refuse)
        fill(db, checkpoints.FEW_BYTES)
        counted.after_commit(db, jobs_wait=False)
    assert "can't start new thread" in caplog.text
    counted.stop()
    counted.after_commit(db, jobs_wait=False)
    counted.after_commit(db, jobs_wait=False)
    assert counted._mover.wait(60)
    fill(db, 1000)
    counted.after_commit(db, jobs_wait=False)
    assert counted._bytes < 40_000


def test_a_thread_that_failed_once_moves_the_log_the_next_time(
    some: tuple[apsw.Connection, checkpoints.Checkpoints], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "REST_SECS", 0.0)
    db, counted = some

    def fail(_path: Path) -> apsw.Connection:
        raise MemoryError

    with monkeypatch.context() as failing:
        failing.setattr(checkpoints, "open_writer", fail)
        fill(db, checkpoints.FEW_BYTES)
        counted.after_commit(db, jobs_wait=True)
        assert counted._mover.wait(60)
    for _ in range(3):
        fill(db, 1000)
        counted.after_commit(db, jobs_wait=False)
        assert counted._mover.wait(60)
    assert counted._bytes < 40_000


async def test_the_file_shrinks_in_small_steps_when_much_was_deleted(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(space, "SPARE_BYTES", 10_000)
    for _ in range(20):
        await add(store, 100_000)
    await store.write(APP, lambda tx: tx.change_session(SID, deleted_at=1))
    while not await store.write(APP, lambda tx: tx.purge(SID, 5)):
        pass

    def pages(tx: object) -> int:  # noqa: ARG001 - it looks at the file
        db = store._writer._db
        assert db is not None
        return int(db.connection.pragma("page_count"))

    sizes, done = [await store.write(APP, pages)], False
    while not done:
        done = await store.write_system(lambda tx: tx.give_back_space())
        sizes.append(await store.write(APP, pages))
    assert sizes[-1] < sizes[0] - 300
    at_once = space.BYTES_AT_ONCE // connection.PAGE_BYTES
    assert all(0 < before - after <= at_once + 2 for before, after in pairwise(sizes))
    assert await store.integrity() == []


class FullDisk(apsw.Connection):
    """A connection on a disk without room for a second copy of the file."""

    def execute(self, statements: str, *more: Any, **named: Any) -> apsw.Cursor:
        if statements == "VACUUM":
            raise apsw.FullError("database or disk is full")
        return super().execute(statements, *more, **named)


def test_a_disk_that_is_full_costs_an_older_database_only_its_shrinking(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old = FullDisk(str(tmp_path / "forge.db"))
    old.execute("CREATE TABLE words (word TEXT)")
    space.allow_shrinking(old)
    assert "the next start tries again" in caplog.text
    assert old.pragma("auto_vacuum") != space.INCREMENTAL
    old.close()


async def test_an_older_database_can_shrink_from_the_next_start_on(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    old = apsw.Connection(str(folder / "forge.db"))
    old.pragma("journal_mode", "wal")
    old.execute(OLD)
    assert old.pragma("auto_vacuum") == 0
    old.close()
    store = await open_store(folder, SystemClock())
    assert store._reader.db is not None
    assert store._reader.db.connection.pragma("auto_vacuum") == space.INCREMENTAL
    assert await store.integrity() == []
    await store.close()


async def test_a_job_that_takes_long_is_named_in_a_warning(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(job_times, "SLOW_JOB_CPU_SECS", -1.0)

    def count_to_ten(tx: Tx) -> int:  # noqa: ARG001 - what every job gets
        return sum(range(10))

    with caplog.at_level(logging.WARNING):
        await store.write(APP, count_to_ten)
    assert "count_to_ten kept the store's writer busy" in caplog.text
    assert store.job_times.samples()[-1].value == 2
