"""Clients of other versions: an older one is understood, and a newer one is told what is missing."""

import json
from typing import Any

import pytest

from tests.api.harness import App
from tests.api.talk import post, say

OLD_TURN = {"ok", "session_id", "turn_index", "events", "stop_reason", "duration_ms"}
OLD_STATE = {"session_id", "agent", "cwd", "created_at", "last_turn_at", "turn_count", "closed_at", "meta"}
OF_TOMORROW: dict[str, Any] = {"mood": "calm", "budget": {"usd": 3}, "tags": [1, None]}


def test_a_client_of_0_3_finds_what_it_reads(app: App) -> None:
    """It asks for no form of events, sends no key, and reads the keys that it knew."""
    made = app.http.post("/sessions", json={"agent": "claude"}).json()
    sid = made["session_id"]
    turn = app.http.post(f"/sessions/{sid}/turn", json={"prompt": "think hm\necho hello"}).json()
    assert turn.keys() >= OLD_TURN
    words = [event["params"]["content"]["text"] for event in turn["events"] if event["type"] == "text"]
    assert "".join(words) == "hello"
    assert turn["events"][-1]["result"]["stopReason"] == "end_turn"
    assert app.http.get(f"/sessions/{sid}").json().keys() >= OLD_STATE
    page = app.http.get(f"/sessions/{sid}/events").json()
    assert [event["seq"] for event in page["events"]] == list(range(1, page["next"] + 1))
    assert all({"seq", "ts", "turn", "type"} <= event.keys() for event in page["events"])
    assert any("jsonrpc" in event for event in page["events"]), "the nested form is what it gets unasked"


def test_a_client_of_0_3_sees_no_other_events_of_an_import_or_a_fork(app: App) -> None:
    rows = [{"role": "user", "content": "why?"}, {"role": "assistant", "content": "because"}]
    sid = app.http.post("/sessions/import", json={"messages": rows, "agent": "claude"}).json()["session_id"]
    branch = post(app, sid, "fork").json()["session_id"]
    for one in (sid, branch):
        events = app.http.get(f"/sessions/{one}/events").json()["events"]
        assert [(event["seq"], event["type"]) for event in events] == [(1, "session.created")]
        with app.stream(f"/sessions/{one}/events") as stream:
            first = next(iter(stream))
        assert json.loads(first.data)["type"] == "session.created"


def test_fields_of_tomorrow_are_left_aside_where_old_callers_are_served(app: App) -> None:
    made = app.http.post("/sessions", json={"agent": "claude", **OF_TOMORROW})
    assert made.status_code == 200
    sid = made.json()["session_id"]
    assert app.turn(sid, "echo hi", **OF_TOMORROW).status_code == 200
    for what in ("undo", "redo", "clear"):
        assert post(app, sid, what, **OF_TOMORROW).status_code == 200, what


def test_an_unknown_field_does_not_make_another_request_of_a_key(app: App) -> None:
    """A newer client repeats what an older one sent, or the other way round."""
    sid = app.session()
    key = {"Idempotency-Key": "k1"}
    first = app.http.post(f"/sessions/{sid}/turns", json={"prompt": "echo hi"}, headers=key)
    again = app.http.post(f"/sessions/{sid}/turns", json={"prompt": "echo hi", **OF_TOMORROW}, headers=key)
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json()["turn_index"] == again.json()["turn_index"] == 1


def test_fields_of_tomorrow_are_refused_by_name_on_the_strict_surface(app: App) -> None:
    reply = app.http.post("/api/sessions", json={"agent": "claude", **OF_TOMORROW})
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid_request")
    assert "mood" in reply.text


def test_a_word_of_tomorrow_is_refused_by_name(app: App) -> None:
    reply = app.turn(app.session(), "echo hi", if_busy="teleport")
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid_request")
    assert "if_busy" in reply.json()["error"]


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("POST", "/sessions/{sid}/dream", 404, "route_not_found"),
        ("PUT", "/sessions/{sid}", 405, "method_not_allowed"),
        ("GET", "/v2/sessions", 404, "route_not_found"),
    ],
)
def test_a_route_of_tomorrow_is_not_taken_for_a_missing_session(
    app: App, method: str, path: str, status: int, code: str
) -> None:
    reply = app.http.request(method, path.format(sid=app.session()), json={})
    assert (reply.status_code, reply.json()["code"]) == (status, code)


def test_a_second_click_takes_no_second_exchange(app: App) -> None:
    """Who names the head that they saw has one exchange taken, however often they click."""
    sid = app.session()
    for word in ("one", "two", "three"):
        say(app, sid, f"echo {word}")
    head = app.http.get(f"/sessions/{sid}").json()["head"]
    clicks = [post(app, sid, what, expected_head=head) for what in ("retry", "retry", "undo")]
    assert [click.status_code for click in clicks] == [200, 409, 409]
    assert {click.json().get("code") for click in clicks[1:]} == {"head_moved"}
    left = app.http.get(f"/sessions/{sid}/messages").json()["messages"]
    assert [message["content"] for message in left if message["role"] == "assistant"] == ["one", "two"]
