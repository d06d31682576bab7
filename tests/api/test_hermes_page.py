"""What the page of hermes-webui needs beside its conversations: each answer that it stumbled over."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from clawdforge.http.dialects.hermes.quiet import QUIET
from tests.api.harness import App, Server

UNKNOWN = "nonexistent_zzz"


def new(app: App, **body: Any) -> dict[str, Any]:
    reply = app.http.post("/api/session/new", json=body)
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()["session"]
    return found


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server as a proxy puts it behind the page: under a prefix."""
    found = Server(
        tmp_path_factory.mktemp("page") / "data", {"CLAWDFORGE_HERMES_PREFIX": "/hermes"}, "--trust-loopback"
    )
    yield found
    found.stop()


@pytest.fixture
def page(behind: Server) -> httpx2.Client:
    return behind.client()


def test_a_new_session_beside_one_that_has_a_folder_of_its_own(app: App, other: App) -> None:
    """The page hands back the workspace that it was shown of the session before."""
    first = new(app)
    second = new(app, workspace=first["workspace"])
    assert second["workspace"] not in (first["workspace"], "")
    start = {"session_id": second["session_id"], "message": "echo hi", "workspace": first["workspace"]}
    assert app.http.post("/api/chat/start", json=start).status_code == 200
    moved = {"session_id": second["session_id"], "workspace": first["workspace"] + "/"}
    assert app.http.post("/api/session/update", json=moved).status_code == 200
    app.http.post("/api/session/delete", json={"session_id": first["session_id"]})
    assert new(app, workspace=first["workspace"])["workspace"] != first["workspace"]
    assert new(other, workspace=first["workspace"])["workspace"] != first["workspace"]
    inside = app.http.post("/api/session/new", json={"workspace": first["workspace"] + "/deeper"})
    assert inside.status_code == 400


def test_sessions_have_the_profile_that_the_page_lists(app: App) -> None:
    """It leaves out the sessions of every other."""
    assert new(app)["profile"] == "default"
    assert new(app, profile="default")["profile"] == "default"
    other = new(app, profile="work")
    assert other["profile"] == "work"
    status = app.http.get("/api/session/status", params={"session_id": other["session_id"]})
    assert status.json()["profile"] == "work"
    made = app.http.post("/api/sessions", json={}).json()["session_id"]
    shown = app.http.get("/api/session", params={"session_id": made}).json()["session"]
    assert shown["profile"] == "default", "whatever persona it has"


def test_the_list_tells_the_time_of_the_server(page: httpx2.Client) -> None:
    made = page.post("/hermes/api/session/new", json={}).json()["session"]
    listed = page.get("/hermes/api/sessions").json()
    assert listed["server_time"] >= made["created_at"]


def test_health_counts_what_runs(server: Server, app: App) -> None:
    session_id = new(app)["session_id"]
    started = {"session_id": session_id, "message": "echo a\nsleep 60"}
    stream_id = app.http.post("/api/chat/start", json=started).json()["stream_id"]
    with app.stream("/api/chat/stream", params={"stream_id": stream_id}) as reader:
        next(iter(reader))
        found = server.client().get("/health").json()
        assert found["active_streams"] >= 1
        assert found["uptime_seconds"] > 0
        app.http.get("/api/chat/cancel", params={"stream_id": stream_id})


def test_no_path_is_the_id_of_a_session(app: App) -> None:
    for odd in ("../../etc/passwd", "a/b", "a\\b", "/"):
        reply = app.http.post("/api/session/delete", json={"session_id": odd})
        assert (reply.status_code, "Invalid session_id" in reply.json()["error"]) == (400, True), odd


def test_nothing_steers_an_agent_that_answers(app: App) -> None:
    body = {"session_id": new(app)["session_id"], "text": "no, the other one"}
    reply = app.http.post("/api/chat/steer", json=body)
    assert reply.json() == {"ok": True, "accepted": False, "fallback": "no_cached_agent", "stream_id": None}
    assert app.http.post("/api/chat/steer", json={**body, "session_id": UNKNOWN}).status_code == 404


@pytest.mark.parametrize("route", QUIET)
def test_a_quiet_answer_needs_a_token_and_is_true(app: App, server: Server, route: str) -> None:
    method, _, path = route.partition(" ")
    named = {"session_id": new(app)["session_id"]} if path == "/api/session/yolo" else {}
    reply = app.http.request(method, path, params=named, json={} if method == "POST" else None)
    assert (reply.status_code, reply.json()["ok"]) == (200, True), route
    assert server.client().request(method, path, params=named).status_code == 401, route


def test_what_a_quiet_answer_says(app: App) -> None:
    def get(path: str) -> Any:
        return app.http.get(f"/api/{path}").json()

    assert get("projects")["projects"] == []
    assert get("onboarding/status")["completed"] is True
    assert get("onboarding/status")["settings"]["default_workspace"] == ""
    assert get("profile/active")["name"] == get("profiles")["active"] == "default"
    assert get("settings")["check_for_updates"] is False
    kept = app.http.post("/api/settings", json={"theme": "light"})
    assert (kept.status_code, kept.json()["saved"]) == (200, False)
    for body in ({"_set_password": "x"}, {"_clear_password": True}):
        assert app.http.post("/api/settings", json=body).status_code == 501
    for mode, bold in (("approve_all", True), ("ask", False)):
        named = new(app, permission_mode=mode)["session_id"]
        found = app.http.get("/api/session/yolo", params={"session_id": named}).json()
        assert found["yolo_enabled"] is bold
    assert app.http.get("/api/session/yolo", params={"session_id": UNKNOWN}).status_code == 404


def test_who_is_logged_in_is_told_to_everybody(server: Server, app: App, page: httpx2.Client) -> None:
    stranger = server.client().get("/api/auth/status").json()
    assert (stranger["auth_enabled"], stranger["logged_in"]) == (True, False)
    assert app.http.get("/api/auth/status").json()["logged_in"] is True
    trusted = page.get("/hermes/api/auth/status").json()
    assert (trusted["auth_enabled"], trusted["logged_in"]) == (False, True)


def test_a_page_hears_of_changes_in_its_list(app: App, other: App) -> None:
    with app.stream("/api/sessions/events") as reader:
        new(other)
        made = new(app)["session_id"]
        frame = next(iter(reader))
        assert (frame.event, json.loads(frame.data)) == (
            "sessions_changed",
            {"session_id": made, "profile": "default"},
        )
    assert app.http.get("/api/sessions/events").status_code == 400


def test_a_page_hears_of_what_others_say_in_its_session(app: App, other: App) -> None:
    session_id = new(app)["session_id"]
    named = {"session_id": session_id, "known_count": 0}
    with app.stream("/api/session/stream", params=named) as reader:
        frames = iter(reader)
        assert next(frames).event == "initial"
        app.turn(session_id, "echo elsewhere")
        counts: list[int] = []
        while not counts or counts[-1] < 2:
            frame = next(frames)
            assert frame.event == "session-updated"
            counts.append(json.loads(frame.data)["message_count"])
        assert counts[-1] == 2
    for session in (UNKNOWN, session_id):
        reply = other.http.get("/api/session/stream", params={"session_id": session})
        assert reply.status_code == 404
