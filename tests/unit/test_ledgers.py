"""Entries that are put away: nothing is removed that is not in a whole file, and the chain holds."""

import gzip
import json
from pathlib import Path
from typing import Any

import apsw
import pytest
from click.testing import CliRunner

from clawdforge.cli import main
from clawdforge.core.clock import SystemClock
from clawdforge.core.models.rows import RunRow
from clawdforge.core.ports import SystemTx, Tx
from clawdforge.core.rules.audit_chain import START
from clawdforge.core.services.audit import AuditService
from clawdforge.folder_lock import FolderLock
from clawdforge.stores import open_store
from clawdforge.stores.sqlite.system import SqliteSystemTx
from clawdforge.upkeep import ledgers
from clawdforge.upkeep.archive import UpkeepError
from clawdforge.upkeep.deep import examine_deep
from clawdforge.upkeep.ledgers import put_away, verify
from clawdforge.wire.disk import DiskForm

COUNT = 50


def a_run(number: int) -> RunRow:
    return RunRow(
        run_id=f"r{number}",
        app_name="alpha",
        model=None,
        prompt=f"prompt {number} …",
        ok=True,
        stop_reason="end_turn",
        duration_ms=5,
        created_at=number,
    )


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    """A folder with entries and runs of the times 1 to COUNT."""
    folder = tmp_path / "data"
    store = await open_store(folder, SystemClock())

    def fill(tx: SystemTx) -> None:
        for number in range(1, COUNT + 1):
            tx.audit_system("alpha", "granted", number, {"folders": [f"/srv/{number}"], "text": "grüß"})

    def add_runs(tx: Tx) -> None:
        for number in range(1, COUNT + 1):
            tx.add_run(a_run(number))

    await store.write_system(fill)
    await store.write("alpha", add_runs)
    await store.close()
    return folder


async def look(data: Path, head: str | None = None) -> Any:
    """The verdict on the audit, how many entries and runs are left, and what runs are counted for."""
    store = await open_store(data, SystemClock())
    try:
        verdict = await AuditService(store).verify(head)
        entries = await store.read_system(lambda view: [row.number for row in view.audit(limit=1000)])
        runs = await store.read_system(lambda view: view.disk_of_apps())
        return verdict, entries, runs["alpha"][DiskForm.RUNS]
    finally:
        await store.close()


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


async def append(data: Path) -> None:
    store = await open_store(data, SystemClock())
    await store.write_system(lambda tx: tx.audit_system("alpha", "later", 1000, {}))
    await store.close()


@pytest.mark.parametrize("before", [2, 25, COUNT, COUNT + 1])
async def test_the_chain_holds_across_what_was_put_away(data: Path, tmp_path: Path, before: int) -> None:
    whole, _, _ = await look(data)
    file = tmp_path / "audit.gz"
    made = put_away("audit", data, file, before)
    assert made == verify(file)
    assert (made.count, file.stat().st_mode & 0o077) == (before - 1, 0)
    verdict, entries, _ = await look(data, made.head)
    assert entries == list(range(before, COUNT + 1))
    assert (verdict.valid, verdict.head, verdict.entries) == (True, whole.head, COUNT)
    await append(data)
    verdict, entries, _ = await look(data, whole.head)
    assert (verdict.valid, verdict.entries, entries[-1]) == (True, COUNT + 1, COUNT + 1)
    assert [one.text for one in examine_deep(data, SystemClock()) if one.level != "ok"] == []


async def test_several_files_are_one_chain(data: Path, tmp_path: Path) -> None:
    heads = [START]
    for number, before in enumerate((10, 20, COUNT + 1)):
        file = tmp_path / f"{number}.gz"
        heads.append(str(put_away("audit", data, file, before).head))
        header = json.loads(gzip.decompress(file.read_bytes()).splitlines()[0])
        assert header["prev"] == heads[-2]
    verdict, entries, _ = await look(data, heads[1])
    assert entries == []
    assert not verdict.valid
    assert "archive verify" in str(verdict.reason)


async def test_an_entry_that_is_changed_before_it_is_put_away_is_found(data: Path, tmp_path: Path) -> None:
    connection = apsw.Connection(str(data / "forge.db"))
    connection.execute("UPDATE session_events SET details = '{}' WHERE number = 7")
    connection.close()
    with pytest.raises(UpkeepError, match="entry 7"):
        put_away("audit", data, tmp_path / "audit.gz", COUNT)
    assert names(tmp_path) == {"data"}
    _, entries, _ = await look(data)
    assert len(entries) == COUNT


async def test_one_that_is_missing_at_the_seam_is_found(data: Path, tmp_path: Path) -> None:
    put_away("audit", data, tmp_path / "audit.gz", 10)
    connection = apsw.Connection(str(data / "forge.db"))
    connection.execute("DELETE FROM session_events WHERE number = 10")
    connection.close()
    verdict, _, _ = await look(data)
    assert (verdict.valid, verdict.first_bad) == (False, 10)


async def test_runs_are_put_away_and_no_longer_counted(data: Path, tmp_path: Path) -> None:
    _, _, before = await look(data)
    file = tmp_path / "runs.gz"
    assert put_away("runs", data, file, 31) == verify(file)
    _, entries, after = await look(data)
    assert 0 < after < before
    assert len(entries) == COUNT
    lines = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    assert [line["prompt"] for line in lines[1:-1]] == [f"prompt {n} …" for n in range(1, 31)]
    put_away("runs", data, tmp_path / "rest.gz", COUNT + 1)
    assert (await look(data))[2] == 0


@pytest.mark.parametrize("kind", ["audit", "runs"])
async def test_a_file_that_was_changed_is_found(data: Path, tmp_path: Path, kind: ledgers.Kind) -> None:
    file, other = tmp_path / "old.gz", tmp_path / "changed.gz"
    put_away(kind, data, file, 20)
    lines = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
    changed = {
        "an entry": [*lines[:3], lines[3].replace(b"alpha", b"omega"), *lines[4:]],
        "one less": [*lines[:3], *lines[4:]],
        "one twice": [*lines[:3], lines[3], *lines[3:]],
        "no end": lines[:-1],
        "nothing": [],
        "no json": [b"hello\n"],
    }
    for what, text in changed.items():
        other.write_bytes(gzip.compress(b"".join(text)))
        with pytest.raises(UpkeepError, match="not whole, or was changed"):
            verify(other)
        assert what
    for data_bytes in (file.read_bytes()[:-20], b"", b"\x1f\x8b nonsense"):
        other.write_bytes(data_bytes)
        with pytest.raises(UpkeepError, match="not whole, or was changed"):
            verify(other)


async def test_a_crash_while_entries_are_removed_loses_none(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledgers, "AT_ONCE", 8)
    remove, calls = SqliteSystemTx.remove_audit, iter(range(100))

    def fail_later(tx: SqliteSystemTx, through: int) -> Any:
        if next(calls) == 2:
            raise KeyboardInterrupt
        return remove(tx, through)

    monkeypatch.setattr(SqliteSystemTx, "remove_audit", fail_later)
    file = tmp_path / "first.gz"
    with pytest.raises(KeyboardInterrupt):
        put_away("audit", data, file, 31)
    assert verify(file).count == 30
    verdict, entries, _ = await look(data)
    assert (verdict.valid, entries[0]) == (True, 17)
    assert put_away("audit", data, tmp_path / "second.gz", 31).count == 14
    verdict, entries, _ = await look(data)
    assert (verdict.valid, entries[0]) == (True, 31)


async def test_what_cannot_be_done_changes_nothing(data: Path, tmp_path: Path) -> None:
    there = tmp_path / "there.gz"
    there.write_text("mine")
    cases = {
        "exists already": (data, there, COUNT),
        "nothing is older": (data, tmp_path / "none.gz", 1),
        "cannot be written": (data, tmp_path / "no" / "such" / "folder.gz", COUNT),
        "no database": (tmp_path / "empty", tmp_path / "new.gz", COUNT),
    }
    for told, (folder, file, before) in cases.items():
        with pytest.raises(UpkeepError, match=told):
            put_away("audit", folder, file, before)
    lock = FolderLock.acquire(data, "", 1)
    with pytest.raises(UpkeepError, match="is in use by the server"):
        put_away("audit", data, tmp_path / "new.gz", COUNT)
    lock.release()
    assert there.read_text() == "mine"
    assert names(tmp_path) == {"data", "there.gz"}
    assert len((await look(data))[1]) == COUNT


def test_the_command_line_takes_a_day(data: Path, tmp_path: Path) -> None:
    where, file = ("--data-dir", str(data)), str(tmp_path / "audit.gz")
    runner = CliRunner()
    made = runner.invoke(main, ["archive", "audit", file, "--before", "1970-01-02", *where])
    assert (made.exit_code, f"{COUNT} entries" in made.output) == (0, True), made.output
    checked = runner.invoke(main, ["archive", "verify", file])
    assert (checked.exit_code, made.output.split()[-1] in checked.output) == (0, True), checked.output
    again = runner.invoke(main, ["archive", "runs", file, "--before", "1970-01-02", *where])
    assert again.exit_code != 0
    assert runner.invoke(main, ["archive", "runs", file, "--before", "soon", *where]).exit_code == 2
