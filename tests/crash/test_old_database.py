"""A database of version 0.3.0: all of it is read in both forms, its cut-off turn ends, and it goes on."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest

from clawdforge.wire.event_forms import is_from_agent, nest
from tests.crash.kit import Event, Forge

DUMP = Path(__file__).parent.parent / "data" / "forge-0.3.0.sql"
RICH = "a0b87368-8159-40ce-8cc7-ad1657791458"
CUT = "6ccc65fc-b1f1-4ea6-84c8-11620c9bcf6b"
StoredEvent = dict[str, list[Event]]


@pytest.fixture
def stored(tmp_path: Path) -> StoredEvent:
    """Lays the database into the data folder; the events of each session as they were written."""
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    for session_id in (RICH, CUT):
        (data / "workspaces" / session_id).mkdir(parents=True)
    with closing(sqlite3.connect(data / "forge.db")) as database:
        database.executescript(DUMP.read_text("utf-8").replace("@DATA@", str(data)))
        found: StoredEvent = {RICH: [], CUT: []}
        for session_id, line in database.execute("SELECT session_id, data FROM events ORDER BY seq"):
            found[session_id].append(orjson.loads(line))
    return found


def page(forge: Forge, session_id: str, **params: Any) -> list[Event]:
    reply = forge.http.get(f"/sessions/{session_id}/events", params={"limit": 1000, **params})
    assert reply.status_code == 200, reply.text
    found: list[Event] = reply.json()["events"]
    return found


def streamed(forge: Forge, session_id: str, count: int, **params: Any) -> list[Event]:
    with forge.app.stream(f"/sessions/{session_id}/events", params=params) as stream:
        frames = (frame for frame in stream if frame.data)
        return [orjson.loads(next(frames).data) for _ in range(count)]


def test_every_event_is_read_in_both_forms(forge: Callable[..., Forge], stored: StoredEvent) -> None:
    server = forge()
    for session_id, written in stored.items():
        nested, compact = page(server, session_id), page(server, session_id, form="compact")
        assert nested[: len(written)] == written
        assert [nest(event) for event in compact] == nested
        assert all("params" not in event and "jsonrpc" not in event for event in compact)
        assert streamed(server, session_id, len(written)) == written
        assert streamed(server, session_id, len(written), form="compact") == compact[: len(written)]
    words = [event["content"] for event in page(server, RICH, form="compact") if event["type"] == "text"]
    assert words[:4] == ["hello", "with an id", "", "noted"]
    called = next(event for event in page(server, RICH, form="compact") if event["type"] == "tool_call")
    assert (called["name"], called["args"], called["update"]["status"]) == (
        "look",
        {"name": "look"},
        "pending",
    )


def test_the_turn_that_was_cut_off_ends_with_what_it_said_and_the_queue_goes_on(
    forge: Callable[..., Forge], stored: StoredEvent
) -> None:
    server = forge()
    assert server.ended(CUT, 2)["outcome"] == "interrupted"
    assert server.ended(CUT, 3)["outcome"] == "completed"
    said = {message["turn"]: message for message in server.messages(CUT) if message["role"] == "assistant"}
    assert said[3]["content"] == "queued"
    half = said[2]
    assert (half["content"], half["thinking"]) == ("one half, then the other", "Hm.")
    assert [call["title"] for call in half["tool_calls"]] == ["look"]
    assert half["tool_calls"][0]["status"] == "completed"
    assert [entry["content"] for entry in half["plan"]] == ["a", "b"]
    assert page(server, CUT)[: len(stored[CUT])] == stored[CUT]
    server.check(CUT)


def test_an_old_session_goes_on_and_is_read_the_same_way(
    forge: Callable[..., Forge], stored: StoredEvent
) -> None:
    """S4-15, S4-90."""
    server = forge()
    before = server.messages(RICH)
    new = server.turn(RICH, "think hm\ntool look 5\necho new words")
    assert [event["type"] for event in new["events"]][-1] == "response"
    assert all("jsonrpc" in event for event in new["events"])
    server.kill()
    server.restart()
    nested, compact = page(server, RICH), page(server, RICH, form="compact")
    assert nested[: len(stored[RICH])] == stored[RICH]
    assert [nest(event) for event in compact] == nested
    assert [event for event in nested if event["turn"] == 6 and is_from_agent(event["type"])] == new["events"]
    assert server.messages(RICH)[: len(before)] == before
    assert server.messages(RICH)[-1]["content"] == "new words"
    exported = server.http.get(f"/sessions/{RICH}/export", params={"events": True}).json()
    assert exported["events"] == nested
    server.check(RICH)


def test_the_folder_of_an_old_session_is_known_from_its_first_turn_on(
    forge: Callable[..., Forge], stored: StoredEvent
) -> None:
    assert stored
    server = forge()
    database = server.server.data_dir / "forge.db"

    def identity() -> str | None:
        with closing(sqlite3.connect(database)) as opened:
            query = "SELECT workspace_identity FROM sessions WHERE session_id = ?"
            found: str | None = opened.execute(query, (RICH,)).fetchone()[0]
            return found

    assert identity() is None
    server.turn(RICH, "echo known")
    workspace = server.server.data_dir / "workspaces" / RICH
    assert str(identity()).split(":")[1] == str(workspace.stat().st_ino)
    server.kill()
    workspace.rename(server.folder / "aside")
    workspace.mkdir()
    server.restart()
    refused = server.http.post(f"/sessions/{RICH}/turn", json={"prompt": "echo x"})
    assert refused.json()["code"] == "workspace_changed"
    assert server.messages(RICH)
    server.kill()
    workspace.rmdir()
    (server.folder / "aside").rename(workspace)
    server.restart()
    server.turn(RICH, "echo back")


def test_a_hermes_stream_of_an_old_turn_tells_of_its_tools(
    forge: Callable[..., Forge], stored: StoredEvent
) -> None:
    assert stored
    server = forge()
    with server.app.stream("/api/chat/stream", params={"stream_id": f"{RICH}:2"}) as stream:
        frames = stream.upto("stream_end")
    told = [(frame.event, orjson.loads(frame.data)) for frame in frames]
    assert [data["name"] for name, data in told if name == "tool"] == ["look", "edit"]
    assert [data["is_error"] for name, data in told if name == "tool_complete"] == [False, True]
    assert "".join(data["text"] for name, data in told if name == "token").startswith("with an idnoted")
