"""What the log makes anew: messages and turns of sessions of every origin, whatever became of them since."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.upkeep.deep import examine_deep
from tests.crash.kit import Forge

pytestmark = pytest.mark.slow
NOT_IN_THE_LOG = {"id", "stale", "key", "fingerprint", "timeout_secs", "error_extra"}
NOT_IN_THE_LOG |= {"token_id", "traceparent"}
TALK: list[dict[str, Any]] = [
    {"role": "user", "content": "what is in \u00e9\u0000 here?", "ts": "2024-02-29T12:00:00.000007Z"},
    {"role": "assistant", "content": "let me look", "tool_calls": [{"id": "t1", "function": {"name": "ls"}}]},
    {"role": "tool", "content": "a.txt", "tool_call_id": "t1"},
    {"role": "assistant", "content": "a file", "thinking": "one, it seems"},
]
LONG = [{"role": ("user", "assistant")[n % 2], "content": f"line {n}"} for n in range(150)]
ORIGINS = ("plain", "imported", "long", "reimported", "continued", "fork", "fork_of_fork", "long_fork")


@dataclass(frozen=True)
class Made:
    data: Path
    sessions: dict[str, str]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    """A folder whose server has stopped. Of each session, something was taken back or archived."""
    forge = Forge(tmp_path_factory.mktemp("rebuilt"))
    try:
        sessions = make_sessions(forge)
        forge.server.stop()
        yield Made(forge.server.data_dir, sessions)
    finally:
        forge.close()


def make_sessions(forge: Forge) -> dict[str, str]:
    found = {"plain": forge.session()}
    for word in ("one", "two", "three"):
        forge.turn(found["plain"], f"think hm\ntool look 1\nplan a; b\necho {word}")
    post(forge, f"/api/sessions/{found['plain']}/messages", content="posted")
    found["imported"] = take_in(forge, messages=TALK)
    found["long"] = take_in(forge, messages=LONG)
    whole = forge.http.get(f"/sessions/{found['plain']}/export").json()
    found["reimported"] = take_in(forge, format="clawdforge", export=whole)
    found["fork"] = fork(forge, found["plain"])
    found["fork_of_fork"] = fork(forge, found["fork"])
    found["continued"] = take_in(forge, messages=TALK)
    found["long_fork"] = fork(forge, found["long"])
    go_on(forge, found["plain"])
    go_on(forge, found["continued"])
    go_on(forge, found["fork_of_fork"])
    for origin in ("imported", "long", "reimported", "long_fork"):
        post(forge, f"/sessions/{found[origin]}/undo")
    for origin in ("long", "reimported"):
        post(forge, f"/sessions/{found[origin]}/redo")
    post(forge, f"/sessions/{found['fork']}/undo")
    post(forge, f"/sessions/{found['long_fork']}/clear")
    return found


def go_on(forge: Forge, session_id: str) -> None:
    forge.turn(session_id, "think so\necho four")
    forge.turn(session_id, "echo five", max_tool_calls=3)
    forge.turn(session_id, "tool look 1\ntool look 2", max_tool_calls=1)
    post(forge, f"/sessions/{session_id}/undo")
    post(forge, f"/sessions/{session_id}/undo")
    post(forge, f"/sessions/{session_id}/redo")
    post(forge, f"/sessions/{session_id}/undo")
    post(forge, f"/sessions/{session_id}/compact")
    forge.turn(session_id, "echo six")
    forge.app.turn(session_id, "error broken")  # a turn that failed


def post(forge: Forge, path: str, **body: Any) -> dict[str, Any]:
    reply = forge.http.post(path, json=body)
    assert reply.status_code == 200, (path, reply.text)
    found: dict[str, Any] = reply.json()
    return found


def take_in(forge: Forge, **body: Any) -> str:
    return str(post(forge, "/sessions/import", agent="scripted", **body)["session_id"])


def fork(forge: Forge, session_id: str) -> str:
    return str(post(forge, f"/sessions/{session_id}/fork")["session_id"])


@pytest.fixture
def data(made: Made, tmp_path: Path) -> Path:
    """The database alone, for a test to damage."""
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    for file in made.data.glob("forge.db*"):
        shutil.copy(file, folder)
    return folder


def sql(data: Path, statement: str, *values: Any) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(data / "forge.db")) as database, database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute(statement, values)]


def rows(data: Path) -> list[dict[str, Any]]:
    """All that the log has to tell again."""
    found = sql(data, "SELECT * FROM messages ORDER BY session_id, seq")
    found += sql(data, "SELECT * FROM turns ORDER BY session_id, turn_index")
    found += sql(data, "SELECT * FROM sessions ORDER BY session_id")
    return [{name: row[name] for name in row.keys() - NOT_IN_THE_LOG} for row in found]


def bad(data: Path, *, repair: bool = False) -> list[str]:
    return [one.text for one in examine_deep(data, SystemClock(), repair=repair) if one.level != "ok"]


def test_sound_sessions_of_every_origin_are_left_as_they_are(data: Path) -> None:
    before = rows(data)
    assert bad(data) == []
    assert bad(data, repair=True) == []
    assert rows(data) == before


@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM messages WHERE session_id = ?",
        "DELETE FROM messages WHERE session_id = ? AND seq % 2 = 0",
        "UPDATE messages SET content = 'x', thinking = 'y', tool_calls = '[]' WHERE session_id = ?",
        "UPDATE messages SET role = 'system', turn = 77, plan = '[1]', is_summary = 1 WHERE session_id = ?",
        "UPDATE messages SET cut = 1 - cut WHERE session_id = ?",
        "UPDATE messages SET archived = 1 - archived, pending = 1 WHERE session_id = ?",
    ],
)
def test_messages_are_made_anew(made: Made, data: Path, origin: str, damage: str) -> None:
    before = rows(data)
    sql(data, damage, made.sessions[origin])
    found = bad(data)
    assert found
    assert all(made.sessions[origin] in text for text in found), found
    assert bad(data, repair=True) == []
    assert bad(data) == []
    assert rows(data) == before


@pytest.mark.parametrize("origin", ["plain", "reimported", "continued", "fork", "fork_of_fork"])
@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM turns WHERE session_id = ?",
        "UPDATE turns SET prompt = 'x', outcome = 'cancelled', usage = '{}' WHERE session_id = ?",
        "UPDATE turns SET ended_at = 1, first_seq = 1, retry_of = 1 WHERE session_id = ?",
        "UPDATE turns SET cut = 1 - cut, state = 'queued' WHERE session_id = ?",
        "UPDATE sessions SET turn_count = 99, last_turn = 1, last_message = 0 WHERE session_id = ?",
    ],
)
def test_turns_and_counts_are_made_anew(made: Made, data: Path, origin: str, damage: str) -> None:
    before = rows(data)
    sql(data, damage, made.sessions[origin])
    assert bad(data)
    assert bad(data, repair=True) == []
    assert bad(data) == []
    assert rows(data) == before


def test_everything_at_once_is_made_anew(data: Path) -> None:
    before = rows(data)
    sql(data, "DELETE FROM messages")
    sql(data, "DELETE FROM turns")
    assert bad(data, repair=True) == []
    assert rows(data) == before


def test_a_fork_needs_its_source_no_more(made: Made, data: Path) -> None:
    """It is made anew from its own log when the session that it came from is gone."""
    for session_id in (made.sessions["plain"], made.sessions["fork"]):
        sql(data, "DELETE FROM sessions WHERE session_id = ?", session_id)
        sql(data, "DELETE FROM messages WHERE session_id = ?", session_id)
        sql(data, "DELETE FROM turns WHERE session_id = ?", session_id)
        sql(data, "DELETE FROM events WHERE session_id = ?", session_id)
    before = rows(data)
    sql(data, "DELETE FROM messages WHERE session_id = ?", made.sessions["fork_of_fork"])
    assert bad(data, repair=True) == []
    assert rows(data) == before


@pytest.mark.parametrize("origin", ["imported", "fork_of_fork"])
@pytest.mark.parametrize(
    "lost", ["seq = 0", "seq = -2", "seq = (SELECT min(seq) FROM events WHERE session_id = ?1)"]
)
def test_nothing_is_made_anew_from_a_beginning_with_a_gap(
    made: Made, data: Path, origin: str, lost: str
) -> None:
    session_id = made.sessions[origin]
    sql(data, f"DELETE FROM events WHERE session_id = ?1 AND {lost}", session_id)  # noqa: S608 - from above
    sql(data, "UPDATE messages SET content = 'x' WHERE session_id = ?1", session_id)
    (told,) = bad(data)
    assert "began with" in told
    assert bad(data, repair=True) == [told]


def test_what_is_in_no_event_is_told(made: Made, data: Path) -> None:
    session_id = made.sessions["fork"]
    forged = "INSERT INTO messages (session_id, seq, role, content, ts) VALUES (?, 900, 'user', 'forged', 1)"
    sql(data, forged, session_id)
    found = bad(data)
    assert any("message 900 is in no event" in text for text in found), found
    assert any("message 900 is in no event" in text for text in bad(data, repair=True))


@pytest.mark.parametrize("origin", ["imported", "long", "fork", "long_fork"])
def test_readers_begin_with_the_first_event(made: Made, data: Path, origin: str) -> None:
    """What a session began with is in its log, and in no page of it."""
    kinds = "SELECT seq, type FROM events WHERE session_id = ? ORDER BY seq"
    log = [(row["seq"], row["type"]) for row in sql(data, kinds, made.sessions[origin])]
    assert log[0][0] <= 0
    assert [kind for seq, kind in log if seq == 1] == ["session.created"]
    assert all(kind.endswith(".brought") == (seq < 1) for seq, kind in log)
