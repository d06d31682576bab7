"""A store with packs: a damaged one costs its session alone, the doctor finds it, and room is given back."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.models.events import draft
from clawdforge.core.models.rows import SessionRow
from clawdforge.core.ports import Tx
from clawdforge.stores import open_store
from clawdforge.stores.sqlite import early_packs, space
from clawdforge.stores.sqlite.packs import EventRow, pack
from clawdforge.stores.sqlite.store import SqliteStore
from clawdforge.upkeep.deep import examine_deep
from clawdforge.upkeep.doctor import Finding
from clawdforge.wire.errors import SessionDamaged
from clawdforge.wire.event import EventType

APP: Final = "alpha"
FIRST: Final = "session_id = 'damaged' AND first_seq = 1"


async def fill(store: SqliteStore, session_id: str, count: int = 700) -> None:
    def work(tx: Tx) -> None:
        row = SessionRow(app_name=APP, session_id=session_id, agent="a", cwd="/", created_at=1, updated_at=1)
        tx.add_session(row)
        tx.append(session_id, [draft(EventType.SESSION_CREATED, None, 1, {"agent": "a", "cwd": "/"})])
        words = [draft(EventType.TEXT, None, 1, {"content": f"word {number}"}) for number in range(count - 1)]
        tx.append(session_id, words)

    await store.write(APP, work)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """Two sessions, both packed."""
    opened = await open_store(tmp_path / "data", SystemClock())
    for session_id in ("damaged", "sound"):
        await fill(opened, session_id)
        while await opened.pack(APP, session_id, 700):
            pass
    yield opened
    await opened.close()


async def damage(store: SqliteStore, statement: str) -> None:
    def work(tx: Any) -> None:
        tx._db.plain.connection.execute(statement.replace("WHERE FIRST", f"WHERE {FIRST}"))

    await store.write(APP, work)


async def read(store: SqliteStore, session_id: str, after: int = 0) -> int:
    page = {"after": after, "limit": 10**6, "max_bytes": 10**9}
    return len(await store.read(APP, lambda view: view.events(session_id, **page)))


def is_bad(finding: Finding) -> bool:
    """What is done here by hand is not counted as bytes on the disk, which the doctor notices too."""
    return finding.level != "ok" and finding.about != "disk"


async def test_a_damaged_pack_costs_one_session(store: SqliteStore) -> None:
    await damage(store, "UPDATE packs SET data = x'789c' WHERE FIRST")
    with pytest.raises(SessionDamaged):
        await read(store, "damaged")
    assert await read(store, "damaged", after=512) == 188
    assert await read(store, "sound") == 700
    page = {"after": 0, "limit": 9, "max_bytes": 10**9}
    mark = draft(EventType.TEXT, None, 1, {"content": "y"})
    first, failed, last = await asyncio.gather(
        store.write(APP, lambda tx: tx.append("sound", [mark])),
        store.write(APP, lambda tx: tx.events("damaged", **page)),
        store.write(APP, lambda tx: tx.append("damaged", [mark])),
        return_exceptions=True,
    )
    assert (first, last) == (701, 701)
    assert isinstance(failed, SessionDamaged)
    assert store.health() is None


@pytest.mark.parametrize(
    ("statement", "finding"),
    [
        (
            "UPDATE packs SET data = x'00' WHERE FIRST",
            "cannot be unpacked",
        ),
        ("DELETE FROM packs WHERE FIRST", "188 events from 513 to 700"),
        ("DELETE FROM packs WHERE session_id = 'damaged' AND first_seq > 1", "512 events from 1 to 512"),
        (
            "UPDATE packs SET first_seq = 2 WHERE session_id = 'damaged' AND first_seq = 1",
            "cannot be unpacked",
        ),
        (
            "INSERT INTO events SELECT 'damaged', 5, NULL, 'text', 1, x'7b7d', 1",
            "1 of its events are in a pack and beside it",
        ),
        (
            "INSERT INTO packs SELECT session_id, 1, 511, 1, 1, data FROM packs WHERE FIRST",
            "cannot be unpacked",
        ),
    ],
)
async def test_the_doctor_checks_packs(store: SqliteStore, statement: str, finding: str) -> None:
    folder = store.path.parent
    assert [one.text for one in examine_deep(folder, SystemClock()) if one.level != "ok"] == []
    await damage(store, statement)
    await store.close()
    for repair in (False, True):
        bad = [one for one in examine_deep(folder, SystemClock(), repair=repair) if is_bad(one)]
        assert len(bad) == 1, bad
        assert finding in bad[0].text
        assert bad[0].text.startswith("damaged")


async def test_two_packs_with_the_same_events_are_found(store: SqliteStore) -> None:
    rows = [EventRow(seq, None, "text", 1, b"{}", 1) for seq in range(500, 513)]
    await damage(store, "UPDATE packs SET last_seq = 511 WHERE FIRST")
    shorter = pack([EventRow(seq, None, "text", 1, b"{}", 1) for seq in range(1, 512)]).hex()
    await damage(store, f"UPDATE packs SET data = x'{shorter}' WHERE last_seq = 511")  # noqa: S608
    await damage(store, f"INSERT INTO packs VALUES ('damaged', 500, 512, 1, 1, x'{pack(rows).hex()}')")  # noqa: S608
    await store.close()
    found = examine_deep(store.path.parent, SystemClock())
    assert [one.text for one in found if is_bad(one)] == ["damaged: two packs hold its event 500"]


async def test_the_room_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(space, "SPARE_BYTES", 20_000)
    monkeypatch.setattr(early_packs, "LEAST", 1_000_000)  # as if each event had come by itself
    store = await open_store(tmp_path / "data", SystemClock())
    names = [f"s{number}" for number in range(6)]
    for name in names:
        await fill(store, name, 2000)
    before = await size_of(store)
    for name in names:
        while await store.pack(APP, name, 2000):
            pass
    while not await store.write_system(lambda tx: tx.give_back_space()):
        pass
    assert await size_of(store) < before * 0.5
    assert await read(store, names[3]) == 2000
    assert await store.integrity() == []
    await store.close()


async def size_of(store: SqliteStore) -> int:
    pages: int = await store.write(APP, lambda tx: tx._db.plain.connection.pragma("page_count"))  # type: ignore[attr-defined]
    return pages


async def test_packed_events_are_counted_as_small_as_they_are(store: SqliteStore, tmp_path: Path) -> None:
    def bytes_of(tx: Any) -> tuple[int, int]:
        counted = tx._db.row("SELECT sum(events) FROM session_bytes", {})[0]
        real = tx._db.row(
            "SELECT (SELECT sum(length(data)) FROM packs)"
            " + (SELECT coalesce(sum(length(data)), 0) FROM events)",
            {},
        )[0]
        return counted, real

    counted, real = await store.write(APP, bytes_of)
    assert counted == real
    assert sum((await store.read(APP, lambda view: view.stored_bytes())).values()) == counted
    found = await asyncio.to_thread(lambda: list(examine_deep(tmp_path / "data", SystemClock())))
    assert not [one.text for one in found if "bytes" in one.text]
    await store.write(APP, lambda tx: tx.change_session("sound", deleted_at=1))
    while not await store.write(APP, lambda tx: tx.purge("sound", 1000)):
        pass
    counted, real = await store.write(APP, bytes_of)
    assert counted == real
