"""Sessions over HTTP: create, state, isolation, close, list (S0.2, S0.3, S0.5 to S0.8)."""

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import clawdforge
from clawdforge.wire.session import Session
from tests.api.harness import App, Server

pytestmark = pytest.mark.on_both


def test_every_route_of_an_app_needs_a_token(server: Server) -> None:
    """S0-10, S0-12."""
    client = server.client()
    for method, path in (
        ("POST", "/sessions"),
        ("GET", "/sessions"),
        ("GET", "/sessions/x"),
        ("DELETE", "/sessions/x"),
        ("POST", "/sessions/x/turn"),
    ):
        assert client.request(method, path).status_code == 401, (method, path)


def test_create_answers_an_id_and_the_agent(app: App, server: Server) -> None:
    """S0-11, S0-20, S0-21, S0-23, S0-24."""
    reply = app.http.post("/sessions", json={"agent": "claude"})
    body = reply.json()
    assert reply.status_code == 200
    assert body["ok"] is True
    assert len(body["session_id"]) >= 16
    assert str(uuid.UUID(body["session_id"])) == body["session_id"]
    assert body["id"] == body["session_id"]
    assert body["agent"] == "claude"
    assert isinstance(body["created_at"], int)
    assert Path(body["cwd"]).is_dir()
    kept = server.sql("SELECT app_name FROM sessions WHERE session_id = ?", body["session_id"])
    assert kept == [(app.name,)]


def test_an_empty_body_makes_a_session_of_the_default_agent(app: App) -> None:
    """S1-23."""
    assert app.http.post("/sessions").json()["ok"] is True


def test_unknown_fields_are_ignored(app: App) -> None:
    """X-11."""
    assert app.http.post("/sessions", json={"agent": "claude", "colour": "red"}).status_code == 200


def test_meta_is_read_back_equal(app: App) -> None:
    """S0-22."""
    meta = {"a": [1, 2.5, None, {"ü": '\u2028 \\ "'}], "big": 2**62}
    session_id = app.session(meta=meta)
    assert app.http.get(f"/sessions/{session_id}").json()["meta"] == meta


def test_no_meta_is_null_in_every_answer_and_an_empty_one_is_an_object(app: App) -> None:
    """S0-22."""
    for given, shown in (({}, None), ({"meta": None}, None), ({"meta": {}}, {})):
        made = app.http.post("/sessions", json=given).json()
        at = f"/sessions/{made['session_id']}"
        again = app.http.patch(at, json={"title": "t"}).json()
        (listed,) = app.http.get("/sessions", params={"prefix": made["session_id"]}).json()["sessions"]
        fork = app.http.post(f"{at}/fork").json()
        whole = app.http.get(f"{at}/export").json()
        back = app.http.post("/sessions/import", json={"format": "clawdforge", "export": whole}).json()
        created = app.http.get(f"{at}/events").json()["events"][0]
        shapes = (made, again, listed, fork, whole["session"], back, created, app.http.get(at).json())
        assert [shape["meta"] for shape in shapes] == [shown] * len(shapes)
        assert app.http.patch(at, json={"meta": {"a": 1}}).json()["meta"] == {"a": 1}


def test_each_session_has_its_own_folder(app: App) -> None:
    """S0-25."""
    folders = {app.http.get(f"/sessions/{app.session()}").json()["cwd"] for _ in range(3)}
    assert len(folders) == 3


def test_a_full_pool_is_503_and_a_close_frees_a_place(start: Callable[..., Server]) -> None:
    """S0-26, S0-27, S0-28."""
    app = start(MAX_LIVE_SESSIONS="2").app()
    first = app.session()
    app.session()
    reply = app.http.post("/sessions", json={"agent": "claude"})
    assert (reply.status_code, reply.json()["code"]) == (503, "pool_full")
    app.http.delete(f"/sessions/{first}")
    assert app.http.post("/sessions", json={"agent": "claude"}).status_code == 200


def test_state_before_the_first_turn(app: App) -> None:
    """S0-35, S0-50."""
    session_id = app.session()
    state = app.http.get(f"/sessions/{session_id}").json()
    assert state["ok"] is True
    assert (state["turn_count"], state["last_turn_at"], state["closed_at"]) == (0, None, None)
    assert state["live"] is True
    assert state["meta"] is None
    assert set(Session.model_fields) <= set(state)


def test_another_apps_session_is_404_never_403(app: App, other: App) -> None:
    """S0-42, S0-51, S0-55, S0-56."""
    session_id = app.session()
    unknown = other.http.get("/sessions/nonexistent_zzz")
    for reply in (
        other.http.get(f"/sessions/{session_id}"),
        other.turn(session_id, "hi"),
        other.http.delete(f"/sessions/{session_id}"),
    ):
        assert (reply.status_code, reply.content) == (404, unknown.content)
    assert app.http.get(f"/sessions/{session_id}").json()["live"] is True


def test_close_is_idempotent_and_soft(app: App) -> None:
    """S0-60, S0-61, S0-62, S0-63."""
    session_id = app.session()
    first = app.http.delete(f"/sessions/{session_id}")
    assert (first.status_code, first.json()["ok"], first.json()["already_closed"]) == (200, True, False)
    second = app.http.delete(f"/sessions/{session_id}")
    assert (second.status_code, second.json()["already_closed"]) == (200, True)
    state = app.http.get(f"/sessions/{session_id}").json()
    assert isinstance(state["closed_at"], int)
    assert (state["live"], state["state"]) == (False, "ended")


def test_a_turn_after_close_is_410_and_reopen_helps(app: App) -> None:
    """S0-41, X-06."""
    session_id = app.session()
    app.http.delete(f"/sessions/{session_id}")
    reply = app.turn(session_id, "echo hi")
    assert (reply.status_code, reply.json()["code"]) == (410, "session_closed")
    assert app.http.post(f"/sessions/{session_id}/reopen").json()["live"] is True
    assert app.turn(session_id, "echo hi").status_code == 200


def test_the_list_is_strictly_the_apps_own(app: App, other: App) -> None:
    """S0-13, S0-70, S0-71."""
    mine, theirs = {app.session(), app.session()}, {other.session()}
    for who, ids in ((app, mine), (other, theirs)):
        page = who.http.get("/sessions").json()
        assert {row["session_id"] for row in page["sessions"]} == ids
        assert page["count"] == len(page["sessions"]) == len(ids)
        assert {row["app_name"] for row in page["sessions"]} == {who.name}


def test_two_tokens_of_one_app_share_its_sessions(app: App, server: Server) -> None:
    """S0-13."""
    session_id = app.session()
    assert server.app(app.name).http.get(f"/sessions/{session_id}").status_code == 200


def test_closed_sessions_are_listed_unless_told_otherwise(app: App) -> None:
    """S0-72."""
    closed, live = app.session(), app.session()
    app.http.delete(f"/sessions/{closed}")
    every = app.http.get("/sessions").json()["sessions"]
    assert {row["session_id"] for row in every} == {closed, live}
    only = app.http.get("/sessions", params={"include_closed": "false"}).json()["sessions"]
    assert [row["session_id"] for row in only] == [live]


def test_pages_of_the_list_follow_each_other_without_gap_or_repeat(app: App) -> None:
    ids = [app.session() for _ in range(7)]
    seen: list[str] = []
    params: dict[str, Any] = {"limit": 3}
    while True:
        page = app.http.get("/sessions", params=params).json()
        seen += [row["session_id"] for row in page["sessions"]]
        if page["next"] is None:
            break
        params["cursor"] = page["next"]
    assert sorted(seen) == sorted(ids)
    assert len(seen) == 7


def test_the_list_can_be_narrowed(app: App) -> None:
    found = app.session(title="Plan of the house", labels=["blue"])
    app.session(title="Other")
    for params in ({"q": "house"}, {"label": "blue"}, {"prefix": found[:8]}):
        page = app.http.get("/sessions", params=params).json()
        assert [row["session_id"] for row in page["sessions"]] == [found], params


@pytest.mark.parametrize("cursor", ["zzz", "-1", "\x00", "e30", "W10", "WzEsMl0", "9" * 400])
def test_a_made_up_cursor_is_refused_or_harmless(app: App, cursor: str) -> None:
    reply = app.http.get("/sessions", params={"cursor": cursor})
    assert reply.status_code in (200, 422), reply.text


def test_patch_changes_what_is_given(app: App) -> None:
    session_id = app.session(title="one")
    reply = app.http.patch(f"/sessions/{session_id}", json={"title": "two", "pinned": True, "labels": ["x"]})
    body = reply.json()
    assert (body["title"], body["pinned"], body["labels"]) == ("two", True, ["x"])
    stale = app.http.patch(f"/sessions/{session_id}", json={"title": "three", "expected_head": 1})
    assert (stale.status_code, stale.json()["code"]) == (409, "head_moved")
    assert app.http.get(f"/sessions/{session_id}").json()["title"] == "two"


def test_health_says_what_is_here_without_a_token(server: Server, app: App) -> None:
    """S0-95, X-26, X-27."""
    app.session()
    health = server.client().get("/healthz").json()
    assert (health["ok"], health["version"]) == (True, clawdforge.__version__)
    assert isinstance(health["acpx_present"], bool)
    assert "acpx_version" in health
    assert health["open_sessions"] >= 1
    assert health["trust_loopback"] is False
    assert server.client().head("/healthz").status_code == 200


def test_a_full_pool_is_full_for_reopened_and_changed_sessions_too(start: Callable[..., Server]) -> None:
    """X-10."""
    app = start(MAX_LIVE_SESSIONS="2").app()
    closed = app.session()
    app.http.delete(f"/sessions/{closed}")
    kept = app.session(retention="keep")
    for _ in range(2):
        app.session()
    reply = app.http.post(f"/sessions/{closed}/reopen")
    assert (reply.status_code, reply.json()["code"]) == (503, "pool_full")
    reply = app.http.patch(f"/sessions/{kept}", json={"retention": "ttl"})
    assert (reply.status_code, reply.json()["code"]) == (503, "pool_full")
    assert app.http.get("/healthz").json()["open_sessions"] == 2
