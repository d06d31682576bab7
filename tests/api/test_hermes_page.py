"""What the page of hermes-webui needs beside its conversations: each answer that it stumbled over."""

import json
import signal
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest

from clawdforge.http.dialects.hermes.quiet import QUIET
from tests.api.harness import App, Server, Stream
from tests.databases import Store

pytestmark = pytest.mark.on_both

UNKNOWN = "nonexistent_zzz"


def new(app: App, **body: Any) -> dict[str, Any]:
    reply = app.http.post("/api/session/new", json=body)
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()["session"]
    return found


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory, store: Store) -> Iterator[Server]:
    """A server as a proxy puts it behind the page: under a prefix."""
    settings = {"CLAWDFORGE_HERMES_PREFIX": "/hermes"}
    folder = tmp_path_factory.mktemp("page") / "data"
    found = Server(folder, settings, "--trust-loopback", store=store)
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
    assert listed["server_tz"] == "+0000", "so that the page shows the time of the browser"


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


def test_health_tells_an_app_what_it_does_not_tell_everybody(server: Server, app: App, other: App) -> None:
    """Counts of requests, and of the app's own sessions."""
    for query in ("", "?deep=1"):
        stranger = server.client().get(f"/health{query}")
        wrong = server.client("cf_wrong").get(f"/health{query}")
        operator = server.admin().get(f"/health{query}")
        for one in (stranger, wrong, operator):
            assert one.json().keys() == {"ok", "status", "active_streams", "uptime_seconds"}, one.text
    new(other)
    new(app)
    first = app.http.get("/health").json()["accept_loop"]
    found = app.http.get("/health?deep=1").json()
    assert found["accept_loop"]["requests_total"] > first["requests_total"] > 0
    assert found["accept_loop"]["last_request_at"] >= first["last_request_at"] > 0
    own = app.http.get("/sessions", params={"include_closed": False, "limit": 1000}).json()["sessions"]
    assert found["checks"]["sessions"] == {"status": "ok", "count": len(own)}
    assert {name: one["status"] for name, one in found["checks"].items()} == dict.fromkeys(
        ("streams_lock", "sessions", "projects", "state_db"), "ok"
    )


def test_health_counts_for_the_rate_of_an_app_and_not_for_others(server: Server) -> None:
    app = server.app()
    limits = {"app_name": app.name, "limits": {"max_requests_per_sec": 0}}
    assert server.admin().post("/admin/apps", json=limits).status_code == 200
    refused = app.http.get("/health?deep=1")
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
    assert server.client().get("/health").status_code == 200


def test_health_tells_whom_the_server_trusts(page: httpx2.Client) -> None:
    assert page.get("/hermes/health").json()["accept_loop"]["requests_total"] > 0
    proxied = page.get("/hermes/health?deep=1", headers={"X-Forwarded-For": "10.0.0.1"})
    assert (proxied.status_code, "checks" in proxied.json()) == (200, False)


def test_on_the_page_three_sessions_are_pinned_at_most(page: httpx2.Client) -> None:
    made = [page.post("/hermes/api/session/new", json={}).json()["session"]["session_id"] for _ in range(5)]

    def pin(session_id: str, pinned: bool = True, prefix: str = "/hermes") -> httpx2.Response:
        body = {"session_id": session_id, "pinned": pinned}
        return page.post(f"{prefix}/api/session/pin", json=body)

    for session_id in made[:3]:
        assert pin(session_id).json()["session"]["pinned"] is True
    assert pin(made[0]).status_code == 200, "it is pinned already"
    refused = pin(made[3])
    assert (refused.status_code, "3 sessions" in refused.json()["error"]) == (400, True)
    assert pin(made[3], prefix="").status_code == 200, "elsewhere there is no such limit"
    assert pin(made[4]).status_code == 400
    assert pin(made[0], pinned=False).json()["session"]["pinned"] is False
    assert pin(made[4]).status_code == 400
    page.post("/hermes/api/session/archive", json={"session_id": made[1], "archived": True})
    assert pin(made[4]).status_code == 200


def test_on_the_page_sessions_without_a_chosen_folder_show_one_workspace(page: httpx2.Client) -> None:
    """It hands it to the next chat. Elsewhere, and as `cwd`, each session shows its own."""
    first = page.post("/hermes/api/session/new", json={}).json()["session"]
    again = page.post("/hermes/api/session/new", json={"workspace": first["workspace"]}).json()["session"]
    assert again["workspace"] == first["workspace"]
    assert again["cwd"] != first["cwd"]
    named = {"session_id": again["session_id"]}
    for path in ("session", "session/status"):
        shown = page.get(f"/hermes/api/{path}", params=named).json()
        assert shown.get("session", shown)["workspace"] == first["workspace"]
    elsewhere = page.get("/api/session", params=named).json()["session"]
    assert elsewhere["workspace"] == elsewhere["cwd"] == again["cwd"]
    start = {**named, "message": "echo hi", "workspace": first["workspace"]}
    assert page.post("/hermes/api/chat/start", json=start).status_code == 200


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
    assert get("settings")["default_message_mode"] == "queue", "no agent takes a prompt while it answers"
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


def test_where_nobody_logs_in_any_password_is_none_but_a_wrong_token_is_wrong(page: httpx2.Client) -> None:
    def log_in(password: str, **headers: str) -> httpx2.Response:
        return page.post("/hermes/api/auth/login", json={"password": password}, headers=headers)

    reply = log_in("anything")
    assert (reply.status_code, reply.json()["ok"], reply.json()["app_name"]) == (200, True, "local")
    assert "set-cookie" not in reply.headers
    assert log_in("cf_wrong").status_code == 401
    assert log_in("anything", **{"X-Forwarded-For": "10.0.0.1"}).status_code == 401


@pytest.mark.parametrize(
    "path", ["/health", "/api/auth/status", "/api/sessions/search", "/api/session", "/api/logs"]
)
def test_answers_have_the_headers_of_its_own_server(page: httpx2.Client, path: str) -> None:
    """Refusals too, and nothing that would keep the page from listening to a person."""
    reply = page.get(f"/hermes{path}")
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["x-frame-options"] == "DENY"
    assert reply.headers["referrer-policy"] == "same-origin"
    assert reply.headers["cache-control"] == "no-store"
    assert "microphone=(self)" in reply.headers["permissions-policy"]
    other = page.get("/healthz").headers
    assert other["referrer-policy"] == "no-referrer"
    assert "permissions-policy" not in other


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


def said(app: App, session_id: str, **query: Any) -> list[str]:
    found = app.http.get("/api/session", params={"session_id": session_id, **query}).json()["session"]
    assert len(found["messages"]) <= found["message_count"]
    return [row["content"] for row in found["messages"]]


def test_a_failed_turn_leaves_a_row_that_nobody_said(app: App) -> None:
    session_id = new(app)["session_id"]
    for prompt in ("echo one", "error no such model", "echo so far\nerror gone again", "echo two"):
        app.turn(session_id, prompt)
    shown = said(app, session_id)
    assert [text[:12] for text in shown] == [
        *("echo one", "one", "error no suc", "**Error:** c"),
        *("echo so far\n", "so far", "**Error:** c", "echo two", "two"),
    ]
    assert "no such model" in shown[3]
    rows = app.http.get("/api/session", params={"session_id": session_id}).json()["session"]["messages"]
    assert [row.get("_error", False) for row in rows] == [False] * 3 + [True] + [False] * 2 + [True] + [
        False
    ] * 2
    app.turn(session_id, "recall all")
    assert "**Error:**" not in said(app, session_id)[-1], "the agent is not told"
    file = app.http.get("/api/session/export", params={"session_id": session_id}).json()
    assert [row["content"] for row in file["messages"]].count("gone again") == 0
    assert len(file["messages"]) == file["message_count"] == 9
    again = {"session_id": session_id, "keep_count": 6}  # the row of the second failure: before its turn
    kept = app.http.post("/api/session/truncate", json=again).json()["session"]
    assert [row["content"] for row in kept["messages"]] == shown[:4]
    assert kept["message_count"] == 4
    app.http.post("/api/session/clear", json={"session_id": session_id})
    assert said(app, session_id) == []


def test_a_transcript_is_paged_backwards(app: App) -> None:
    session_id = new(app)["session_id"]
    for number in range(4):
        app.turn(session_id, f"echo {number}")
        app.turn(session_id, f"error {number}")
    whole = said(app, session_id)
    assert len(whole) == 16
    for limit in (1, 3, 5, 16, 40):
        before, parts = 16, list[str]()
        while before:
            query = {"session_id": session_id, "msg_limit": limit, "msg_before": before}
            page = app.http.get("/api/session", params=query).json()["session"]
            parts = [row["content"] for row in page["messages"]] + parts
            assert page["_messages_offset"] == max(0, before - limit)
            assert page["_messages_truncated"] is (before > limit)
            before = page["_messages_offset"]
        assert parts == whole, limit
    assert said(app, session_id, msg_limit=3) == whole[-3:]
    assert said(app, session_id, msg_limit=3, msg_before=99) == whole[-3:]
    assert said(app, session_id, msg_limit=3, msg_before=0) == []
    assert said(app, session_id, msg_before=2) == whole[:2]


def test_after_a_crash_the_page_shows_what_there_is_of_the_answer(start: Callable[..., Server]) -> None:
    """Under the prefix, where its own callers are. Elsewhere the prompt stays pending until the next turn."""
    server = start("--trust-loopback", HERMES_PREFIX="/hermes")
    client = server.client()
    made = client.post("/api/session/new", json={}).json()["session"]["session_id"]
    body = {"session_id": made, "message": "chunks 20\nsleep 60"}
    stream_id = client.post("/hermes/api/chat/start", json=body).json()["stream_id"]
    with client.stream("GET", "/hermes/api/chat/stream", params={"stream_id": stream_id}) as response:
        frames = iter(Stream(response))
        for _ in range(20):
            next(frames)
        running = client.get("/hermes/api/session", params={"session_id": made}).json()["session"]
        assert (running["pending_user_message"], running["active_stream_id"]) == (body["message"], stream_id)
    server.stop(signal.SIGKILL)
    server.start()
    client = server.client()
    found = client.get("/hermes/api/session", params={"session_id": made}).json()["session"]
    assert (found["pending_user_message"], found["active_stream_id"]) == (None, None)
    prompt, answer, ending = found["messages"]
    assert (prompt["content"], answer["content"]) == (body["message"], "".join(f"{n} " for n in range(1, 21)))
    assert (ending["_error"], ending["content"].startswith("**Interrupted:**")) == (True, True)
    assert found["message_count"] == 3
    (listed,) = client.get("/hermes/api/sessions").json()["sessions"]
    assert (listed["active_stream_id"], listed["is_streaming"]) == (None, False)
    elsewhere = client.get("/api/session", params={"session_id": made}).json()["session"]
    assert (elsewhere["pending_user_message"], elsewhere["messages"]) == (body["message"], [])
    again = client.post("/hermes/api/chat/start", json={"session_id": made, "message": "echo on"}).json()
    with client.stream(
        "GET", "/hermes/api/chat/stream", params={"stream_id": again["stream_id"]}
    ) as response:
        list(Stream(response))
    for prefix in ("", "/hermes"):
        found = client.get(f"{prefix}/api/session", params={"session_id": made}).json()["session"]
        assert [row.get("_error", False) for row in found["messages"]] == [False, False, True, False, False]
