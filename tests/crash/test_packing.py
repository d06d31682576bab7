"""Packing on servers that are killed: an event is always in one place, and a packed session goes on."""

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.models.events import draft
from clawdforge.core.models.rows import SessionRow
from clawdforge.core.ports import Tx
from clawdforge.stores import open_store
from clawdforge.stores.sqlite import early_packs
from clawdforge.upkeep.deep import examine_deep
from clawdforge.wire.event import EventType
from clawdforge.wire.event_forms import nest
from tests.api.harness import until
from tests.crash.kit import Event, Forge

APP, COUNT = "alpha", 40
CHILD = """
import asyncio, os, signal, sys
from pathlib import Path
from clawdforge.core.clock import SystemClock
from clawdforge.stores import open_store
from clawdforge.stores.sqlite import early_packs

async def main(folder, left):
    store = await open_store(Path(folder), SystemClock())

    def trace(_cursor, _sql, _bindings):
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return True

    store._writer._db.connection.exec_trace = trace
    assert await store.pack("alpha", "s1", 40)
    os._exit(7)

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


async def read_log(folder: Path) -> list[Any]:
    store = await open_store(folder, SystemClock())
    found = await store.read(APP, lambda view: view.events("s1", after=0, limit=1000, max_bytes=1 << 30))
    assert await store.integrity() == []
    await store.close()
    return found


def count_places(folder: Path) -> tuple[int, int]:
    """Rows, and events in packs."""
    with closing(sqlite3.connect(folder / "forge.db")) as database:
        sql = "SELECT (SELECT count(*) FROM events), (SELECT sum(last_seq - first_seq + 1) FROM packs)"
        rows, packed = database.execute(sql).fetchone()
    return rows, packed


@pytest.mark.parametrize("at_once", [False, True], ids=["one by one", "at once"])
async def test_killed_before_any_statement_it_is_all_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, at_once: bool
) -> None:
    """The first ten events are packed already, and are packed again with the others."""
    monkeypatch.setattr(early_packs, "LEAST", 1_000_000)
    store = await open_store(tmp_path, SystemClock())

    def fill(tx: Tx) -> None:
        row = SessionRow(app_name=APP, session_id="s1", agent="a", cwd="/", created_at=1, updated_at=1)
        tx.add_session(row)
        tx.append("s1", [draft(EventType.SESSION_CREATED, None, 1, {"agent": "a", "cwd": "/"})])
        tx.append("s1", [draft(EventType.TEXT, 1, 1, {"content": f"{n}"}) for n in range(19)])

    def say_more(tx: Tx) -> None:
        tx.append("s1", [draft(EventType.TEXT, 1, 1, {"content": f"{n}"}) for n in range(COUNT - 20)])

    await store.write(APP, fill)
    assert await store.pack(APP, "s1", 10)
    if at_once:
        monkeypatch.setattr(early_packs, "LEAST", 8)
    await store.write(APP, say_more)
    await store.close()
    before = await read_log(tmp_path)
    assert [event.seq for event in before] == list(range(1, COUNT + 1))
    for step in range(1, 100):
        command = [sys.executable, "-c", CHILD, str(tmp_path), str(step)]
        ended = (await asyncio.to_thread(subprocess.run, command, check=False, timeout=60)).returncode
        assert ended in (-9, 7)
        rows = 10 if at_once else COUNT - 10
        assert count_places(tmp_path) == ((rows, COUNT - rows) if ended == -9 else (0, COUNT)), step
        assert await read_log(tmp_path) == before
        if ended == 7:
            break
    assert step > 6, "it was killed before each of its statements"
    assert [one.text for one in examine_deep(tmp_path, SystemClock()) if one.level == "bad"] == []


def rows_left(crash: Forge, session_id: str) -> int:
    with closing(sqlite3.connect(crash.server.data_dir / "forge.db")) as database:
        sql = "SELECT count(*) FROM events WHERE session_id = ?"
        (count,) = database.execute(sql, [session_id]).fetchone()
    return int(count)


def wait_until_packed(crash: Forge, session_id: str) -> None:
    until(lambda: not rows_left(crash, session_id), f"{session_id} is packed")


def raw_pages(crash: Forge, session_id: str, **params: Any) -> list[bytes]:
    """Every page of three, byte by byte, and the whole."""
    head = crash.http.get(f"/sessions/{session_id}").json()["head"]
    found = []
    for after in range(head + 1):
        query = {"after": after, "limit": 3, **params}
        found.append(crash.http.get(f"/sessions/{session_id}/events", params=query).content)
    return found


def streamed(crash: Forge, session_id: str, after: int, count: int) -> list[Event]:
    headers = {"Last-Event-ID": str(after)}
    with crash.app.stream(f"/sessions/{session_id}/events", headers=headers) as stream:
        frames = (frame for frame in stream if frame.data)
        return [orjson.loads(next(frames).data) for _ in range(count)]


@pytest.mark.slow
def test_a_packed_session_is_read_undone_forked_and_goes_on(forge: Callable[..., Forge]) -> None:
    crash = forge(PACK_AFTER_SECS="0")
    session_id = crash.session(title="packed")
    for word in ("one", "two", "three"):
        crash.turn(session_id, f"think hm\ntool look 1\necho {word}")
    written = crash.events(session_id)
    pages = [raw_pages(crash, session_id, **form) for form in ({}, {"form": "compact"})]
    turn = crash.http.get(f"/sessions/{session_id}/turns/2").content
    exported = crash.http.get(f"/sessions/{session_id}/export", params={"events": "true"}).json()
    assert rows_left(crash, session_id) == len(written), "0 is never"
    crash.kill()

    crash.server._env["CLAWDFORGE_PACK_AFTER_SECS"] = "0.4"
    crash.restart()
    wait_until_packed(crash, session_id)
    assert [raw_pages(crash, session_id, **form) for form in ({}, {"form": "compact"})] == pages
    assert crash.http.get(f"/sessions/{session_id}/turns/2").content == turn
    again = crash.http.get(f"/sessions/{session_id}/export", params={"events": "true"}).json()
    assert again["events"] == exported["events"]
    for after in (0, 1, 7, len(written) - 1):
        assert streamed(crash, session_id, after, len(written) - after) == written[after:]

    said = crash.messages(session_id)
    for what in ("undo", "redo", "undo"):
        assert crash.http.post(f"/sessions/{session_id}/{what}", json={}).status_code == 200
        wait_until_packed(crash, session_id)
    forked = crash.http.post(f"/sessions/{session_id}/fork", json={}).json()["session_id"]
    wait_until_packed(crash, forked)
    assert [m["content"] for m in crash.messages(forked)] == [m["content"] for m in said[:4]]
    assert crash.http.post(f"/sessions/{session_id}/redo", json={}).status_code == 200
    assert crash.messages(session_id) == said
    assert crash.said(session_id, "echo on") == "on"
    assert crash.said(forked, "echo on") == "on"
    assert crash.events(session_id)[: len(written)] == written
    for name in (session_id, forked):
        wait_until_packed(crash, name)
    crash.kill()
    found = [one.text for one in examine_deep(crash.server.data_dir, SystemClock()) if one.level == "bad"]
    assert found == []
    with closing(sqlite3.connect(crash.server.data_dir / "forge.db")) as database, database:
        database.execute("DELETE FROM messages WHERE session_id = ?", [forked])
    found = [one.text for one in examine_deep(crash.server.data_dir, SystemClock(), repair=True)]
    assert sum("made anew" in text for text in found) == 6
    crash.restart()
    assert crash.events(session_id)[: len(written)] == written
    assert crash.messages(forked)[0]["content"] == said[0]["content"]


@pytest.mark.slow
def test_an_old_database_is_packed(forge: Callable[..., Forge], tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    dump = (Path(__file__).parent.parent / "data" / "forge-0.3.0.sql").read_text("utf-8")
    with closing(sqlite3.connect(data / "forge.db")) as database:
        database.executescript(dump.replace("@DATA@", str(data)))
        found = database.execute("SELECT session_id, data FROM events ORDER BY session_id, seq").fetchall()
        for (session_id,) in database.execute("SELECT session_id FROM sessions"):
            (data / "workspaces" / session_id).mkdir(parents=True)
    crash = forge(PACK_AFTER_SECS="0.4")
    for session_id in {session_id for session_id, _ in found}:
        written = [orjson.loads(line) for owner, line in found if owner == session_id]
        wait_until_packed(crash, session_id)
        read = crash.http.get(f"/sessions/{session_id}/events", params={"limit": 1000}).json()["events"]
        assert read[: len(written)] == written
        params: dict[str, str | int] = {"limit": 1000, "form": "compact"}
        compact = crash.http.get(f"/sessions/{session_id}/events", params=params).json()["events"]
        assert [nest(event) for event in compact] == read
