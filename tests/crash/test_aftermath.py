"""One kill in the middle of everything; each test looks at one thing that must be in order afterwards."""

import os
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from clawdforge.core.running.recovery import CUT_OFF
from tests.api.harness import until
from tests.crash.kit import Event, Forge

pytestmark = pytest.mark.slow
TOOLS = "tools 3 20\necho after the tools\nhang"
SILENT = "hang"


@dataclass
class Scene:
    """What was there before the kill, and the server after it."""

    crash: Forge
    sessions: dict[str, str]
    stray: str
    foreign: Path
    before: dict[str, Any] = field(default_factory=dict)

    def view(self, name: str, path: str = "/api/session") -> Event:
        reply = self.crash.http.get(path, params={"session_id": self.sessions[name]})
        assert reply.status_code == 200, reply.text
        body = reply.json()
        found: Event = body.get("session", body)
        return found


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    crash = Forge(tmp_path_factory.mktemp("aftermath"), "--trust-loopback", SWEEP_SECS="0.3")
    names = ("silent", "tools", "deleted", "daemon", "queued", "plain")
    sessions = {name: crash.session() for name in names}
    sessions["asking"] = crash.session(permission_mode="ask")
    sessions["bare"] = crash.session(agent="untamed")
    for name in ("silent", "tools", "deleted", "plain"):
        crash.turn(sessions[name], f"write {name}.txt kept\necho first")
    crash.turn(sessions["daemon"], "daemon alive.log")
    crash.turn(sessions["bare"], "daemon alive.log")
    crash.submit(sessions["silent"], SILENT)
    crash.submit(sessions["tools"], TOOLS)
    crash.submit(sessions["asking"], "ask Remove all")
    crash.seen(sessions["tools"], lambda event: event.get("content") == "after the tools", "three tools")
    crash.seen(sessions["asking"], lambda event: event["type"] == "permission.requested", "the request")
    until(lambda: crash.handed()[SILENT], "the silent prompt")
    data = crash.server.data_dir
    found = Scene(crash, sessions, str(uuid.uuid4()), data / "workspaces" / str(uuid.uuid4()))
    found.before = {name: found.view(name) for name in ("silent", "tools", "plain")}
    found.before["events"] = crash.events(sessions["tools"])
    assert crash.http.post(f"/sessions/{sessions['deleted']}/purge").status_code == 200
    crash.kill()
    litter(found, data)
    crash.restart()
    yield found
    crash.server.stop()


def litter(scene: Scene, data: Path) -> None:
    for folder in ("homes", "copies", "workspaces"):
        (data / folder / scene.stray).mkdir(parents=True)
    (data / "homes" / scene.stray / "memory").write_text("of nobody")
    (data / "homes" / ".new-0123").mkdir()
    copies = data / "copies" / scene.sessions["plain"]
    (copies / "9.tmp").write_text("half a manifest")
    (copies / "unsettled").touch()
    scene.foreign.mkdir()
    (scene.foreign / "work").write_text("somebody's")


def test_during_the_turn_the_prompt_is_pending(scene: Scene) -> None:
    """S3-30, S3-33, X-13: before any tool ran, and after several."""
    for name, prompt in (("silent", SILENT), ("tools", TOOLS)):
        seen = scene.before[name]
        assert seen["pending_user_message"] == prompt
        assert isinstance(seen["pending_started_at"], float)
        assert seen["active_stream_id"] == f"{scene.sessions[name]}:2"
        assert [m["role"] for m in seen["messages"]] == ["user", "assistant"]
        assert seen["message_count"] == 2
    plain = scene.before["plain"]
    assert (plain["pending_user_message"], plain["active_stream_id"]) == (None, None)
    assert plain["pending_started_at"] is None


def test_after_the_restart_it_still_is(scene: Scene) -> None:
    """S3-31, S3-32, S4-90: the pending text is not among the messages, nor is the half answer."""
    for name in ("silent", "tools"):
        now, then = scene.view(name), scene.before[name]
        for key in ("pending_user_message", "pending_started_at", "active_stream_id", "message_count"):
            assert now[key] == then[key], key
        assert now["messages"] == then["messages"]


def test_nothing_claims_to_run(scene: Scene) -> None:
    """S3-53, S2-51."""
    for name in ("silent", "tools", "asking", "plain"):
        assert scene.view(name, "/api/session/status")["agent_running"] is False
        state = scene.crash.http.get(f"/sessions/{scene.sessions[name]}").json()
        assert (state["running_turn"], state["queued_turns"]) == (None, 0)


def test_events_are_there_once(scene: Scene) -> None:
    """S3-21, S3-50, S3-51."""
    log = scene.crash.events(scene.sessions["tools"])
    assert log[: len(scene.before["events"])] == scene.before["events"]
    done = [e for e in log if e["type"] == "tool_update" and e["params"].get("status") == "completed"]
    assert len(done) == 3
    assert scene.crash.handed()[TOOLS] == 1
    assert scene.crash.handed()[SILENT] == 1
    scene.crash.check(scene.sessions["tools"])


def test_every_path_answers_in_its_own_way(scene: Scene) -> None:
    """S2-22, S2-52, S2-53, X-07, and without a token as the app `local`, which sees nothing of this one."""
    http = scene.crash.http
    for path in ("/api/session", "/api/session/status"):
        unknown = http.get(path, params={"session_id": "nonexistent_zzz"})
        assert (unknown.status_code, "not found" in unknown.json()["error"].lower()) == (404, True)
        assert http.get(path).status_code == 400
        bare = httpx2.get(
            scene.crash.server.url + path, params={"session_id": scene.sessions["plain"]}, verify=False
        )
        assert bare.status_code == 404
    status = scene.view("plain", "/api/session/status")
    assert isinstance(status["updated_at"], float)
    assert isinstance(status["created_at"], float)


def test_a_request_for_permission_is_settled_with_a_reason(scene: Scene) -> None:
    crash, session_id = scene.crash, scene.sessions["asking"]
    found = crash.http.get(f"/sessions/{session_id}/permissions").json()["permissions"]
    assert [(row["state"], row["reason"]) for row in found] == [("expired", CUT_OFF)]
    late = crash.http.post(
        f"/sessions/{session_id}/permissions/{found[0]['permission_id']}", json={"decision": "allow_once"}
    )
    assert late.status_code == 409
    decided = [event for event in crash.events(session_id) if event["type"] == "permission.decided"]
    assert [(event["decision"], event["reason"]) for event in decided] == [("expired", CUT_OFF)]


def test_no_process_of_the_dead_server_lives(scene: Scene) -> None:
    files = []
    for name in ("daemon", "bare"):
        cwd = scene.crash.http.get(f"/sessions/{scene.sessions[name]}").json()["cwd"]
        files.append(Path(cwd) / "alive.log")
    sizes = [file.stat().st_size for file in files]
    threading.Event().wait(0.3)  # each would have grown six times by now
    assert [file.stat().st_size for file in files] == sizes
    assert all(sizes)


def test_what_no_session_knows_is_cleared_away(scene: Scene) -> None:
    data = scene.crash.server.data_dir
    for folder in ("homes", "copies", "workspaces"):
        until(lambda folder=folder: not (data / folder / scene.stray).exists(), folder)  # type: ignore[misc]
    assert not (data / "homes" / ".new-0123").exists()
    assert not (data / "copies" / scene.sessions["plain"] / "9.tmp").exists()
    assert (scene.foreign / "work").read_text() == "somebody's"


def test_what_was_deleted_is_removed(scene: Scene) -> None:
    session_id, data = scene.sessions["deleted"], scene.crash.server.data_dir
    assert scene.crash.http.get(f"/sessions/{session_id}").status_code == 404
    for folder in ("homes", "copies", "workspaces"):
        until(lambda folder=folder: not (data / folder / session_id).exists(), folder)  # type: ignore[misc]


def test_the_conversation_goes_on_in_the_same_memory(scene: Scene) -> None:
    """S3-52, X-13: the next turn replays nothing, and the pending prompt becomes an ordinary message."""
    crash, session_id = scene.crash, scene.sessions["tools"]
    before = scene.view("tools")["updated_at"]
    assert crash.said(session_id, "read tools.txt") == "kept"
    assert crash.remembered(session_id) == ["write tools.txt kept\necho first", TOOLS, "read tools.txt"]
    started = [e["how"] for e in crash.events(session_id) if e["type"] == "context.started"]
    assert started == ["new", "loaded"]
    now = scene.view("tools")
    assert (now["pending_user_message"], now["active_stream_id"]) == (None, None)
    assert [m["content"] for m in now["messages"]][2:4] == [TOOLS, "after the tools"]
    assert [m["content"] for m in now["messages"]].count(TOOLS) == 1
    assert now["updated_at"] > before
    assert os.path.isdir(now["workspace"])  # noqa: PTH112 - as a caller would look
