"""What is stored is counted with every write: after each change, the numbers are those of the rows."""

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.models.rows import RunRow
from clawdforge.core.ports import Tx
from clawdforge.stores import open_store
from clawdforge.stores.sqlite.store import SqliteStore
from clawdforge.wire.disk import DiskForm
from tests.conformance.stores.samples import APP, OTHER, a_file, a_message, a_session, a_turn, make, said

DUMP = Path(__file__).parent.parent / "data" / "forge-0.3.0.sql"
REAL = """
SELECT s.session_id, s.app_name,
    (SELECT coalesce(sum(octet_length(data)), 0) FROM events WHERE session_id = s.session_id),
    (SELECT coalesce(sum(octet_length(content) + octet_length(thinking) + octet_length(tool_calls)
        + octet_length(plan)), 0) FROM messages WHERE session_id = s.session_id)
FROM sessions AS s ORDER BY 1
"""
COUNTED = "SELECT session_id, app_name, events, messages FROM session_bytes ORDER BY 1"
SUMS = """
SELECT app_name, sum(events), sum(messages), sum(homes), sum(home_copies), sum(snapshots), sum(workspaces)
FROM session_bytes GROUP BY app_name HAVING sum(total) > 0 ORDER BY 1
"""
TOTALS = """
SELECT app_name, events, messages, homes, home_copies, snapshots, workspaces FROM app_bytes
WHERE events + messages + homes + home_copies + snapshots + workspaces <> 0 ORDER BY 1
"""
OWN_SUMS = """
SELECT app_name, (SELECT coalesce(sum(size), 0) FROM files WHERE app_name = app_bytes.app_name),
    (SELECT coalesce(sum(octet_length(prompt) + octet_length(coalesce(error, ''))), 0) FROM runs
     WHERE app_name = app_bytes.app_name) FROM app_bytes ORDER BY 1
"""
OWN_TOTALS = "SELECT app_name, uploads, runs FROM app_bytes ORDER BY 1"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    found = await open_store(tmp_path / "data", SystemClock())
    yield found
    await found.close()


def rows(path: Path, sql: str) -> list[Any]:
    """By the library that the store uses: another one in this process would undo its locks."""
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as database:
        return database.execute(sql).fetchall()


def check(path: Path) -> None:
    assert rows(path, COUNTED) == rows(path, REAL)
    assert rows(path, TOTALS) == rows(path, SUMS)
    assert rows(path, OWN_TOTALS) == rows(path, OWN_SUMS)


def a_run(run_id: str, at: int) -> RunRow:
    return RunRow(
        run_id=run_id,
        app_name=APP,
        model=None,
        prompt="a prompt…",
        ok=False,
        stop_reason="error",
        duration_ms=1,
        created_at=at,
        error="it failed",
    )


CHANGES: dict[str, Callable[[Tx, str, str], Any]] = {
    "events": lambda tx, one, _: tx.append(one, [said("fürs Erste"), said("x" * 100_000)]),
    "more events": lambda tx, one, two: (tx.append(one, [said("a")]), tx.append(two, [said("b")])),
    "a message": lambda tx, one, _: tx.add_message(a_message(one, "grüß dich", thinking="hm")),
    "another": lambda tx, one, _: tx.add_message(a_message(one, "again", turn=1, plan=({"a": 1},))),
    "a turn": lambda tx, one, _: tx.add_turn(a_turn(one, 1, state="ended", started_at=5)),
    "other words": lambda tx, one, _: tx.change_messages(one, [1], content="kürzer", thinking="longer"),
    "a mark": lambda tx, one, _: tx.change_messages(one, [1], pending=True),
    "what is brought": lambda tx, one, _: tx.bring(one, after=0, last=9, turns=[1]),
    "a fork": lambda tx, one, two: tx.copy_history(one, two, after=0, through=9, at=9),
    "a cut": lambda tx, one, _: tx.hide_messages(one, [1, 2], [1]),
    "an upload": lambda tx, *_: tx.add_file(a_file("ff-1", size=12_345)),
    "two runs": lambda tx, *_: (tx.add_run(a_run("r1", 1)), tx.add_run(a_run("r2", 2))),
    "files": lambda tx, one, _: tx.set_file_bytes(one, {DiskForm.HOMES: 500, DiskForm.WORKSPACES: 70}),
    "fewer files": lambda tx, one, _: tx.set_file_bytes(one, {DiskForm.HOMES: 20}),
    "no upload": lambda tx, *_: tx.remove_file("ff-1"),
}


async def test_every_change_is_counted(store: SqliteStore) -> None:
    one, two = await make(store), await make(store)
    await make(store, a_session(app_name=OTHER))
    for change in CHANGES.values():
        await store.write(APP, lambda tx, change=change: change(tx, one, two))  # type: ignore[misc]
        check(store.path)
    found = await store.read(APP, lambda view: view.stored_bytes())
    assert found[DiskForm.EVENTS] > 100_000
    assert (found[DiskForm.HOMES], found[DiskForm.WORKSPACES]) == (20, 70)
    assert found[DiskForm.RUNS] == 2 * (len("a prompt…".encode()) + len("it failed"))
    assert not any((await store.read(OTHER, lambda view: view.stored_bytes())).values())


async def test_what_is_purged_is_no_longer_counted(store: SqliteStore) -> None:
    one, two = await make(store), await make(store)
    for change in CHANGES.values():
        await store.write(APP, lambda tx, change=change: change(tx, one, two))  # type: ignore[misc]
    await store.write(APP, lambda tx: tx.change_session(one, deleted_at=1))
    check(store.path)
    while not await store.write(APP, lambda tx: tx.purge(one, 1)):
        check(store.path)
    check(store.path)
    await store.write(APP, lambda tx: tx.change_session(two, deleted_at=1))
    while not await store.write(APP, lambda tx: tx.purge(two, 100)):
        pass
    while await store.write_system(lambda tx: tx.remove_runs(100, 1)):
        check(store.path)
    assert not any((await store.read(APP, lambda view: view.stored_bytes())).values())
    assert rows(store.path, "SELECT count(*) FROM session_bytes") == [(0,)]


async def test_a_job_that_fails_counts_nothing(store: SqliteStore) -> None:
    one = await make(store)

    def fail(tx: Tx) -> None:
        tx.append(one, [said("never")])
        tx.add_message(a_message(one, "never"))
        raise KeyError

    with pytest.raises(KeyError):
        await store.write(APP, fail)
    check(store.path)
    assert not any((await store.read(APP, lambda view: view.stored_bytes())).values())


async def test_files_of_another_app_or_of_a_lost_session_are_not_counted(store: SqliteStore) -> None:
    one = await make(store)
    for app, session_id in ((OTHER, one), (APP, "unknown")):
        await store.write(app, lambda tx, s=session_id: tx.set_file_bytes(s, {DiskForm.HOMES: 9}))  # type: ignore[misc]
    check(store.path)
    assert not any((await store.read(APP, lambda view: view.stored_bytes())).values())


async def test_an_old_database_is_counted_when_it_is_upgraded(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "forge.db")) as database:
        database.executescript(DUMP.read_text("utf-8").replace("@DATA@", str(tmp_path)))
    store = await open_store(tmp_path, SystemClock())
    try:
        check(store.path)
        assert sum(events for _, _, events, _ in rows(store.path, COUNTED)) > 0
    finally:
        await store.close()
