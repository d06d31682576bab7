"""`doctor --deep`: a sound folder is sound, each kind of damage is found, and the log makes messages anew."""

import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.stores import open_store
from clawdforge.upkeep.deep import examine_deep
from tests.crash.kit import Forge

pytestmark = pytest.mark.slow
DUMP = Path(__file__).parent.parent / "data" / "forge-0.3.0.sql"


@pytest.fixture
def crash(forge: Callable[..., Forge]) -> Forge:
    """A folder with sessions of every origin, whose server has stopped."""
    found = forge()
    session_id = found.session(title="damaged")
    for word in ("one", "two", "three"):
        found.turn(session_id, f"think hm\ntool look 1\necho {word} a word to find")
    found.http.post(f"/sessions/{session_id}/undo", json={})
    posted = found.http.post(f"/api/sessions/{session_id}/messages", json={"content": "posted"})
    assert posted.status_code == 200, posted.text
    found.turn(session_id, "echo four")
    found.http.post(f"/sessions/{session_id}/fork", json={})
    imported = {"messages": [{"role": "user", "content": "from elsewhere"}], "agent": "scripted"}
    assert found.http.post("/sessions/import", json=imported).status_code == 200
    found.http.post(f"/sessions/{session_id}/compact", json={})
    assert found.http.post("/files", files={"file": ("a.txt", b"words")}).status_code == 200
    found.server.stop()
    return found


def sql(crash: Forge, statement: str) -> list[Any]:
    with closing(sqlite3.connect(crash.server.data_dir / "forge.db")) as database:
        named = statement.replace("DAMAGED", session_of(database))
    return plain_sql(crash, named)


def session_of(database: sqlite3.Connection) -> str:
    sql = "SELECT session_id FROM sessions WHERE title = 'damaged' AND forked_from IS NULL"
    (found,) = database.execute(sql).fetchone()
    return f"'{found}'"


def bad(crash: Forge, *, repair: bool = False) -> list[str]:
    found = examine_deep(crash.server.data_dir, SystemClock(), repair=repair)
    return [one.text for one in found if one.level != "ok"]


def test_a_sound_folder_is_sound(crash: Forge) -> None:
    assert bad(crash) == []
    assert bad(crash, repair=True) == []


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE messages SET content = 'x' WHERE session_id = DAMAGED AND role = 'assistant' AND turn = 2",
        "UPDATE messages SET content = 'x' WHERE session_id = DAMAGED AND turn IS NULL AND is_summary = 0",
        "UPDATE messages SET content = '' WHERE session_id = DAMAGED AND role = 'user' AND turn = 1",
        "UPDATE sessions SET message_count = 99 WHERE session_id = DAMAGED",
        "UPDATE sessions SET last_message = 0 WHERE session_id = DAMAGED",
    ],
)
def test_what_the_log_tells_is_made_anew(crash: Forge, damage: str) -> None:
    rows = "SELECT seq, content FROM messages WHERE session_id = DAMAGED ORDER BY seq"
    before = sql(crash, rows)
    sql(crash, damage)
    assert len(bad(crash)) == 1
    assert len(bad(crash)) == 1, "without --repair nothing is changed"
    assert bad(crash, repair=True) == []
    assert bad(crash) == []
    assert sql(crash, rows) == before


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("DELETE FROM events WHERE session_id = DAMAGED AND seq = 5", "should have"),
        ("DELETE FROM events WHERE session_id = DAMAGED AND type = 'turn.ended' AND turn = 1", "has 0 ends"),
        ("UPDATE session_events SET event = 'forged' WHERE number = 2", "entry 2"),
        ("UPDATE files SET size = size + 1", "cut short"),
        (
            "UPDATE events SET data = x'7b' WHERE session_id = DAMAGED AND type = 'message.posted'",
            "cannot be read",
        ),
        ("DELETE FROM sessions WHERE session_id = DAMAGED", "belong to no session"),
    ],
)
def test_what_cannot_be_made_anew_is_told(crash: Forge, damage: str, told: str) -> None:
    sql(crash, damage)
    found = bad(crash)
    assert found
    assert any(told in text for text in found), found
    assert bad(crash, repair=True) == found


def test_what_a_deleted_session_left_is_nobodys_mistake(forge: Callable[..., Forge]) -> None:
    found = forge()
    session_id = found.session()
    found.turn(session_id, "echo one")
    found.http.post(f"/sessions/{session_id}/purge").raise_for_status()
    found.kill()
    assert (found.folder / "data" / "homes" / session_id).is_dir()
    assert bad(found) == []


def test_no_repair_beside_a_server(crash: Forge) -> None:
    crash.restart()
    (told,) = bad(crash, repair=True)
    assert "in use by" in told


def test_what_a_kill_left_is_sound_before_and_after_the_next_start(forge: Callable[..., Forge]) -> None:
    """Turns that run, wait for a permission, wait in the queue, were taken out of it, or are tried again."""
    found = forge()
    running, asking = found.session(on_interrupt="retry"), found.session(permission_mode="ask")
    for session_id, prompt in ((running, "echo half\nhang"), (asking, "ask write a file")):
        found.turn(session_id, "echo one")
        found.submit(session_id, prompt)
        found.submit(session_id, "echo later")
        found.submit(session_id, "echo never")
        found.http.delete(f"/sessions/{session_id}/turns/4")
    found.seen(running, lambda event: event.get("content") == "half", "half an answer")
    found.seen(asking, lambda event: event["type"] == "permission.requested", "the question")
    found.kill()
    assert bad(found) == []
    found.restart()
    found.seen(asking, lambda event: event["type"] == "turn.ended" and event["turn"] == 3, "the last turn")
    found.http.post(f"/sessions/{asking}/undo", json={})
    found.kill()
    assert bad(found) == []
    rows = "SELECT session_id, seq, content, pending, cut FROM messages ORDER BY 1, 2"
    before = plain_sql(found, rows)
    plain_sql(found, "DELETE FROM messages")
    assert bad(found, repair=True) == []
    assert plain_sql(found, rows) == before


def test_beside_a_server_at_work_it_finds_nothing(forge: Callable[..., Forge]) -> None:
    """Each look has turns beside it, and only so many: it reads all that were before."""
    found, looks, turns = forge(), 12, 8
    sessions = [found.session() for _ in range(3)]
    allowed = {session_id: threading.Semaphore(0) for session_id in sessions}

    def talk(session_id: str) -> None:
        for _ in range(looks * turns):
            allowed[session_id].acquire()
            found.turn(session_id, "tool look 1\nthink hm\necho done")

    with ThreadPoolExecutor() as pool:
        talks = [pool.submit(talk, session_id) for session_id in sessions]
        try:
            for _ in range(looks):
                for each in allowed.values():
                    each.release(turns)
                assert bad(found) == []
        finally:
            for each in allowed.values():
                each.release(looks * turns)
        for one in talks:
            one.result()
    assert bad(found) == []


def test_a_number_that_was_given_to_a_message_is_not_given_again(crash: Forge) -> None:
    """Of what an older server took in, the log may not tell."""
    last = "SELECT last_message FROM sessions WHERE session_id = DAMAGED"
    damage = "UPDATE sessions SET last_message = last_message + 5, message_count = 99"
    sql(crash, f"{damage} WHERE session_id = DAMAGED")
    before = sql(crash, last)
    bad(crash, repair=True)
    assert sql(crash, last) == before
    assert bad(crash) == []


def plain_sql(crash: Forge, statement: str) -> list[Any]:
    with closing(sqlite3.connect(crash.server.data_dir / "forge.db")) as database, database:
        return database.execute(statement).fetchall()


async def test_a_database_of_an_older_version_is_sound_after_its_upgrade(tmp_path: Path) -> None:
    """Its events have another form, and its posted messages are not in the log."""
    data = tmp_path / "old"
    data.mkdir(mode=0o700)
    with closing(sqlite3.connect(data / "forge.db")) as database:
        database.executescript(DUMP.read_text("utf-8").replace("@DATA@", str(data)))
    (told,) = [one.text for one in examine_deep(data, SystemClock()) if one.level != "ok"]
    assert "another version" in told
    store = await open_store(data, SystemClock())
    await store.close()
    assert wrong_sessions(data) == []
    texts = "SELECT session_id, seq, content, cut, archived FROM messages ORDER BY session_id, seq"
    with closing(sqlite3.connect(data / "forge.db")) as database, database:
        before = database.execute(texts).fetchall()
        gone = (
            "DELETE FROM messages WHERE turn > 0"
            " AND session_id IN (SELECT session_id FROM turns WHERE first_seq > 0)"
        )
        assert database.execute(gone).rowcount > 0
    assert wrong_sessions(data)
    assert wrong_sessions(data, repair=True) == []
    with closing(sqlite3.connect(data / "forge.db")) as database:
        assert database.execute(texts).fetchall() == before


def wrong_sessions(data: Path, *, repair: bool = False) -> list[str]:
    found = examine_deep(data, SystemClock(), repair=repair)
    return [one.text for one in found if one.level != "ok" and one.about != "files"]
