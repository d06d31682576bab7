"""Graphs as agents of a real server: a deepagents agent and a plain graph, over a scripted model."""

import contextlib
import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.harness import App, Server, until
from tests.api.talk import do, state
from tests.graph_database import HOST, GraphDatabase, free_port, write_agents
from tests.needs import needs
from tests.postgres import run_postgres

pytestmark = [
    *(needs("langgraph"), needs("deepagents"), pytest.mark.slow),
    pytest.mark.timeout(300),  # each start of a graph takes seconds of a processor that others use too
]
AGENTS = {
    "CLAWDFORGE_AGENT_DEEP": f"{HOST}.deep:deep",
    "CLAWDFORGE_AGENT_GRAPH": f"{HOST}.scripted:graph",
    "CLAWDFORGE_AGENT_START_SECS": "60",
}
at_home = pytest.mark.parametrize("start", ["home"], indirect=True)
"""For what has nothing to do with where checkpoints are kept."""
Start = Callable[[Path], Server]


@pytest.fixture(
    scope="module",
    params=["home", pytest.param("database", marks=[needs("postgres"), needs("langgraph-postgres")])],
)
def start(request: pytest.FixtureRequest) -> Iterator[Start]:
    """Servers whose graphs keep their checkpoints in their homes, or in a database."""
    with contextlib.ExitStack() as ends:

        def begin(folder: Path) -> Server:
            if request.param == "home":
                server = Server(folder / "data", AGENTS)
            else:
                found = GraphDatabase(postgres)
                server = Server(folder / "data", found.settings, "--config", str(write_agents(folder)))
            ends.callback(server.stop)
            return server

        if request.param == "database":
            postgres = ends.enter_context(run_postgres(port=free_port()))
        yield begin


@pytest.fixture(scope="module")
def graphs(start: Start, tmp_path_factory: pytest.TempPathFactory) -> Server:
    return start(tmp_path_factory.mktemp("graphs"))


def said(app: App, session_id: str, prompt: str) -> tuple[str, dict[str, Any]]:
    reply = app.turn(session_id, prompt)
    assert reply.status_code == 200, reply.text
    turn = reply.json()
    texts = [event["content"] for event in turn["events"] if event.get("type") == "text"]
    return "".join(texts), turn


def heard(app: App, session_id: str) -> list[str]:
    found: list[str] = json.loads(said(app, session_id, "recall")[0])
    return found


def decide(app: App, session_id: str, prompt: str, decision: str) -> list[dict[str, Any]]:
    """Run a turn that asks, and answer; its events."""
    reply = app.http.post(f"/sessions/{session_id}/turns", json={"prompt": prompt})
    assert reply.status_code == 202, reply.text
    index = reply.json()["turn_index"]
    where = f"/sessions/{session_id}/permissions"

    def pending() -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = app.http.get(where).json()["permissions"]
        return [row for row in rows if row["state"] == "pending"]

    request = until(pending, "a request", 60)[0]
    assert (
        app.http.post(f"{where}/{request['permission_id']}", json={"decision": decision}).status_code == 200
    )

    def ended() -> list[dict[str, Any]]:
        page = app.http.get(f"/sessions/{session_id}/events", params={"limit": 1000}).json()["events"]
        mine = [event for event in page if event["turn"] == index]
        return mine if any(event["type"] == "turn.ended" for event in mine) else []

    return until(ended, "the end of the turn", 60)


def results(events: list[dict[str, Any]]) -> str:
    return json.dumps([event for event in events if event["type"] == "tool_update"])


@at_home
def test_a_deep_agent_streams_calls_tools_and_tells_its_usage(graphs: Server) -> None:
    app = graphs.app()
    sid = app.session(agent="deep")
    text, turn = said(app, sid, "chunks 5\nusage 100 20")
    assert text.split() == ["1", "2", "3", "4", "5"]
    assert len([event for event in turn["events"] if event["type"] == "text"]) == 5
    assert (turn["usage"]["input_tokens"], turn["usage"]["output_tokens"]) == (100, 20)
    file = json.dumps({"file_path": "/notes.txt", "content": "remember"})
    text, turn = said(
        app, sid, f'call write_file {file}\ncall read_file {{"file_path": "/notes.txt"}}\necho done'
    )
    assert text == "done"
    calls = [event["name"] for event in turn["events"] if event["type"] == "tool_call"]
    assert calls == ["write_file", "read_file"]
    assert "remember" in results(turn["events"])


@at_home
def test_what_a_deep_agent_wants_reviewed_is_a_permission(graphs: Server) -> None:
    app = graphs.app()
    sid = app.session(agent="deep", permission_mode="ask")
    events = decide(app, sid, 'call delete {"path": "a"}\necho went on', "allow_once")
    assert "deleted a" in results(events)
    assert [event["content"] for event in events if event["type"] == "text"] == ["went on"]
    events = decide(app, sid, 'call delete {"path": "b"}\necho went on', "reject")
    assert "deleted b" not in results(events)


@at_home
def test_a_graphs_own_interrupt_is_a_permission(graphs: Server) -> None:
    app = graphs.app()
    sid = app.session(agent="graph", permission_mode="ask")
    events = decide(app, sid, "ask open the door", "allow_once")
    assert "permission: allow" in "".join(e["content"] for e in events if e["type"] == "text")
    asked = next(event for event in events if event["type"] == "permission.requested")
    assert "open the door" in json.dumps(asked)


def test_undo_and_fork_take_the_graphs_memory_with_them(graphs: Server) -> None:
    app = graphs.app()
    sid = app.session(agent="deep")
    for word in ("one", "two"):
        said(app, sid, f"echo {word}")
    fork = do(app, sid, "fork")["session_id"]
    do(app, sid, "undo")
    assert heard(app, sid) == ["echo one"]
    assert heard(app, fork) == ["echo one", "echo two"]


def test_an_undo_in_a_fork_goes_back_to_what_it_began_with_and_further(graphs: Server) -> None:
    app = graphs.app()
    sid = app.session(agent="graph")
    for word in ("one", "two"):
        said(app, sid, f"echo {word}")
    fork = do(app, sid, "fork")["session_id"]
    said(app, fork, "echo three")
    do(app, fork, "undo")
    assert heard(app, fork) == ["echo one", "echo two"]
    do(app, fork, "undo")
    do(app, fork, "undo")
    assert heard(app, fork) == ["echo one"]


def test_redo_retry_and_clear_do_what_they_do_to_the_transcript(graphs: Server) -> None:
    app = graphs.app()
    sid = app.session(agent="graph")
    for word in ("one", "two", "three"):
        said(app, sid, f"echo {word}")
    do(app, sid, "undo")
    do(app, sid, "undo")
    do(app, sid, "redo")
    assert heard(app, sid) == ["echo one", "echo two"]
    reply = app.http.post(f"/sessions/{sid}/retry", json={"prompt": "echo other", "run": True})
    assert reply.status_code in (200, 202), reply.text
    until(lambda: not state(app, sid)["running_turn"] and not state(app, sid)["queued_turns"], "rest", 60)
    assert heard(app, sid) == ["echo one", "echo two", "echo other"]
    do(app, sid, "clear")
    assert heard(app, sid) == []
    assert heard(app, sid) == ["recall"]


def test_checkpoints_lie_where_they_should(start: Start, tmp_path: Path) -> None:
    server = start(tmp_path)
    app = server.app()
    sid = app.session(agent="graph")
    said(app, sid, "echo one")
    in_home = (server.data_dir / "homes" / sid / ".clawdforge" / "checkpoints.db").is_file()
    assert in_home == ("--config" not in server._flags)


def test_a_graph_comes_back_after_the_server_was_killed_in_its_turn(start: Start, tmp_path: Path) -> None:
    server = start(tmp_path)
    try:
        app = server.app("a")
        sid = app.session(agent="deep")
        said(app, sid, "echo kept")
        app.http.post(f"/sessions/{sid}/turns", json={"prompt": "echo half\nsleep 50"})

        def half() -> bool:
            events = app.http.get(f"/sessions/{sid}/events", params={"limit": 1000}).json()["events"]
            return any(event.get("content") == "half" for event in events)

        until(half, "half an answer", 60)
        server.stop(signal.SIGKILL)
        server.start()
        app = server.app("a")
        texts = heard(app, sid)
        assert texts[0] == "echo kept"
        assert texts.count("echo kept") == 1
    finally:
        server.stop()


def test_a_graph_is_told_of_the_trace_that_its_turn_is_a_part_of(tmp_path: Path) -> None:
    caller = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    server = Server(tmp_path / "data", {**AGENTS, "CLAWDFORGE_OTEL_ENDPOINT": "http://127.0.0.1:1"})
    try:
        app = server.app()
        session_id = app.session(agent="graph")
        prompt = {"prompt": "traceparent"}
        where = f"/sessions/{session_id}/turn"
        reply = app.http.post(where, json=prompt, headers={"traceparent": caller}).json()
    finally:
        server.stop()
    text = "".join(event["content"] for event in reply["events"] if event.get("type") == "text")
    assert text.startswith(caller[:36])
    assert text[36:52] != caller[36:52]
