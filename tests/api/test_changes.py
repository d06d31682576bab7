"""PATCH of everything, the queue, and permissions that are decided over HTTP."""

import json
import signal
from collections.abc import Callable
from typing import Any

import pytest

from tests.api.harness import AGENT, App, Server, until


def events(app: App, session_id: str, kind: str) -> list[dict[str, Any]]:
    page = app.http.get(f"/sessions/{session_id}/events", params={"limit": 1000}).json()["events"]
    return [event for event in page if event["type"] == kind]


def pending(app: App, session_id: str) -> dict[str, Any]:
    def found() -> dict[str, Any] | None:
        rows = app.http.get(f"/sessions/{session_id}/permissions", params={"state": "pending"}).json()
        return next(iter(rows["permissions"]), None)

    return until(found, "the request for permission")


def queue(app: App, session_id: str, prompt: str) -> int:
    reply = app.http.post(f"/sessions/{session_id}/turns", json={"prompt": prompt})
    assert reply.status_code == 202, reply.text
    return int(reply.json()["turn_index"])


def ended(app: App, session_id: str, turn_index: int) -> dict[str, Any]:
    def found() -> dict[str, Any] | None:
        turns = app.http.get(f"/sessions/{session_id}/turns", params={"after": turn_index - 1}).json()[
            "turns"
        ]
        return turns[0] if turns and turns[0]["state"] == "ended" else None

    return until(found, "the turn's end")


def text(app: App, session_id: str, turn_index: int) -> str:
    found = [event for event in events(app, session_id, "text") if event["turn"] == turn_index]
    return "".join(event["content"] for event in found)


CHANGES: dict[str, Any] = {
    "title": "a title",
    "meta": {"k": [1, {"deep": None}]},
    "pinned": True,
    "labels": ["red", "blue"],
    "agent": "demo",
    "model": "openai/gpt-5.4-mini",
    "permission_mode": "ask",
    "on_interrupt": "retry",
    "retention": "keep",
    "plan_mode": True,
}


@pytest.mark.parametrize("name", CHANGES)
def test_each_field_can_be_changed_alone(app: App, name: str) -> None:
    session_id = app.session()
    path = f"/sessions/{session_id}"
    before = app.http.get(path).json()
    reply = app.http.patch(path, json={name: CHANGES[name]})
    assert reply.status_code == 200, reply.text
    after = app.http.get(path).json()
    moved = {"head", "updated_at", "updated_us", name}
    moved |= {"context"} if name == "agent" else set()
    moved |= {"closes_at", "deletes_at"} if name == "retention" else set()
    assert {key: after[key] for key in after if key not in moved} == {
        key: before[key] for key in before if key not in moved
    }
    assert after[name] == CHANGES[name] == reply.json()[name]
    assert after["context"] == before["context"] + (name == "agent")
    assert events(app, session_id, "session.changed")[0]["changes"] == {name: CHANGES[name]}
    assert app.http.patch(path, json={name: CHANGES[name]}).json()["head"] == after["head"], (
        "no change, no event"
    )


def test_all_fields_can_be_changed_at_once_and_a_stale_head_is_refused(app: App) -> None:
    session_id = app.session(model="old")
    path = f"/sessions/{session_id}"
    head = app.http.get(path).json()["head"]
    changed = app.http.patch(path, json={**CHANGES, "expected_head": head}).json()
    assert {name: changed[name] for name in CHANGES} == CHANGES
    stale = app.http.patch(path, json={"title": "late", "expected_head": head})
    assert (stale.status_code, stale.json()["code"], stale.json()["head"]) == (
        409,
        "head_moved",
        changed["head"],
    )
    assert app.http.patch(path, json={"model": None}).json()["model"] is None
    assert app.http.patch(path, json={"title": None, "nonsense": 1}).json()["title"] == "a title"
    for bad in ({"agent": "nobody"}, {"retention": "forever"}, {"labels": [""]}, {"pinned": "maybe"}):
        assert app.http.patch(path, json=bad).status_code in (400, 422)


def test_another_agent_is_told_the_transcript_and_not_during_a_turn(app: App) -> None:
    session_id = app.session()
    app.turn(session_id, "echo remember the blue door")
    running = queue(app, session_id, "hang")
    until(lambda: app.http.get(f"/sessions/{session_id}").json()["running_turn"], "the turn")
    busy = app.http.patch(f"/sessions/{session_id}", json={"agent": "demo"})
    assert (busy.status_code, busy.json()["code"]) == (409, "session_busy")
    assert app.http.patch(f"/sessions/{session_id}", json={"title": "meanwhile"}).status_code == 200
    app.http.post(f"/sessions/{session_id}/cancel", json={})
    ended(app, session_id, running)
    assert app.http.patch(f"/sessions/{session_id}", json={"agent": "demo"}).status_code == 200
    assert app.turn(session_id, "hello").status_code == 200
    assert events(app, session_id, "context.started")[-1]["how"] == "transcript"
    assert app.http.patch(f"/sessions/{session_id}", json={"agent": "claude"}).status_code == 200
    assert app.turn(session_id, "echo ready").status_code == 200
    assert app.turn(session_id, "recall all").status_code == 200
    assert "blue door" in text(app, session_id, 5)


def test_with_another_model_the_agent_keeps_its_memory(app: App) -> None:
    """A live agent does, and one that has ended meanwhile, with the first model that is named too.

    A model that is taken back is a new beginning, and so is one with which that is asked for.
    """
    session_id = app.session()
    path = f"/sessions/{session_id}"
    app.turn(session_id, "echo remember the blue door")
    first = app.http.get(path).json()["context"]
    assert app.http.patch(path, json={"model": "m2"}).status_code == 200
    assert app.turn(session_id, "recall").status_code == 200
    assert json.loads(text(app, session_id, 2)) == ["echo remember the blue door"], "in its own memory"
    assert [event["how"] for event in events(app, session_id, "context.started")] == ["new", "loaded"]
    assert app.http.get(path).json()["context"] == first
    assert events(app, session_id, "session.changed")[-1]["keeps_context"] is True
    app.http.delete(path)
    app.http.post(f"{path}/reopen")
    assert app.http.patch(path, json={"model": "m1"}).status_code == 200
    app.turn(session_id, "recall")
    assert json.loads(text(app, session_id, 3)) == ["echo remember the blue door", "recall"]
    fresh = {"model": "m3", "fresh_context": True}
    assert app.http.patch(path, json=fresh).json()["context"] == first + 1
    assert app.http.patch(path, json=fresh).json()["context"] == first + 1, "nothing was changed"
    assert app.http.patch(path, json={"model": None}).json()["context"] == first + 2
    app.turn(session_id, "echo ready")
    assert events(app, session_id, "context.started")[-1]["how"] == "transcript"
    app.turn(session_id, "recall all")
    assert "blue door" in text(app, session_id, 5)


def test_an_agent_that_cannot_come_back_is_told_the_transcript_for_another_model(
    start: Callable[..., Server],
) -> None:
    server = start(AGENT_FORGETS=f"{AGENT} --no-load --no-resume")
    app = server.app()
    session_id = app.session(agent="forgets", model="m1")
    app.turn(session_id, "echo remember the blue door")
    app.http.patch(f"/sessions/{session_id}", json={"model": "m2"})
    app.turn(session_id, "echo ready")
    app.turn(session_id, "recall all")
    assert "blue door" in text(app, session_id, 3)
    assert events(app, session_id, "context.started")[-1]["how"] == "transcript"


def test_a_turn_is_taken_out_of_the_queue(app: App) -> None:
    session_id = app.session()
    first, second, third = (queue(app, session_id, prompt) for prompt in ("hang", "echo two", "echo three"))
    path = f"/sessions/{session_id}/turns"
    until(lambda: app.http.get(f"/sessions/{session_id}").json()["running_turn"] == first, "the first turn")
    listed = app.http.get(path).json()["turns"]
    assert [(turn["turn_index"], turn["state"]) for turn in listed] == [
        (first, "running"),
        (second, "queued"),
        (third, "queued"),
    ]
    assert app.http.delete(f"{path}/{second}").json() == {
        "ok": True,
        "session_id": session_id,
        "cancelled": 1,
    }
    for index in (first, second):
        reply = app.http.delete(f"{path}/{index}")
        assert (reply.status_code, reply.json()["code"]) == (409, "turn_not_queued")
    for index in (99, 0, -1):
        assert app.http.delete(f"{path}/{index}").json()["code"] == "turn_not_found"
    app.http.post(f"/sessions/{session_id}/cancel", json={})
    assert ended(app, session_id, third)["outcome"] == "completed"
    gone = ended(app, session_id, second)
    assert (gone["outcome"], gone["started_at"], gone["duration_ms"]) == ("cancelled", None, 0)
    assert [event["turn"] for event in events(app, session_id, "turn.ended")] == [second, first, third]


def test_a_turn_that_leaves_the_queue_does_not_settle_the_prompt_that_runs(app: App) -> None:
    """The mark of the running prompt was taken off, and Hermes pages lost its stream."""
    session_id = app.session()
    first, second = (queue(app, session_id, prompt) for prompt in ("hang", "echo two"))
    until(lambda: app.http.get(f"/sessions/{session_id}").json()["running_turn"] == first, "the first turn")
    assert app.http.delete(f"/sessions/{session_id}/turns/{second}").status_code == 200
    messages = app.http.get(f"/sessions/{session_id}/messages").json()["messages"]
    assert [(message["turn"], message["pending"]) for message in messages] == [(first, True)]
    app.http.post(f"/sessions/{session_id}/cancel", json={})
    messages = app.http.get(f"/sessions/{session_id}/messages").json()["messages"]
    assert [(message["turn"], message["pending"]) for message in messages] == [(first, False)]
    said = [row["content"] for row in app.http.get(f"/sessions/{session_id}/messages").json()["messages"]]
    assert "echo two" not in said


@pytest.mark.parametrize(
    ("decision", "option"),
    [("allow_once", "allow_once"), ("allow_always", "allow_always"), ("reject", "reject_once")],
)
def test_a_permission_is_decided_from_another_client_once(
    server: Server, app: App, decision: str, option: str
) -> None:
    session_id = app.session(permission_mode="ask")
    turn = queue(app, session_id, "ask delete everything")
    row = pending(app, session_id)
    assert app.http.get(f"/sessions/{session_id}/turns").json()["turns"][0]["state"] == "waiting"
    asked = events(app, session_id, "permission.requested")
    assert [event["permission_id"] for event in asked] == [row["permission_id"]]
    path = f"/sessions/{session_id}/permissions/{row['permission_id']}"
    elsewhere = server.app(app.name)
    reply = elsewhere.http.post(path, json={"decision": decision})
    assert (reply.status_code, reply.json()["permission"]["state"]) == (200, "decided")
    late = app.http.post(path, json={"decision": "reject"})
    assert (late.status_code, late.json()["code"]) == (409, "already_decided")
    ended(app, session_id, turn)
    assert option in text(app, session_id, turn)
    decided = events(app, session_id, "permission.decided")
    assert [(event["decision"], event["by"]) for event in decided] == [(decision, "caller")]
    assert app.http.post(f"{path}x", json={"decision": "reject"}).json()["code"] == "permission_not_found"
    assert app.http.post(path, json={"decision": "perhaps"}).status_code == 422
    again = queue(app, session_id, "ask delete everything")
    if decision == "allow_always":
        ended(app, session_id, again)
        assert "allow" in text(app, session_id, again)
        assert events(app, session_id, "permission.decided")[-1]["by"] == "policy"
    else:
        assert pending(app, session_id)["permission_id"] != row["permission_id"]
        app.http.post(f"/sessions/{session_id}/cancel", json={})
        ended(app, session_id, again)
        rows = app.http.get(f"/sessions/{session_id}/permissions", params={"state": "expired"}).json()[
            "permissions"
        ]
        assert [expired["reason"] for expired in rows] == ["the turn ended"]


@pytest.mark.parametrize(
    ("mode", "tool", "allowed"),
    [
        ("approve_all", "ask x", True),
        ("deny_all", "ask x", False),
        ("approve_reads", "ask look read", True),
    ],
)
def test_a_mode_decides_by_itself(app: App, mode: str, tool: str, allowed: bool) -> None:
    """X-24."""
    session_id = app.session(permission_mode=mode)
    assert app.turn(session_id, tool).status_code == 200
    assert ("permission: allow" in text(app, session_id, 1)) is allowed
    assert app.http.get(f"/sessions/{session_id}/permissions").json()["count"] == 0


def test_a_session_without_a_policy_allows_everything(app: App) -> None:
    """S0-40, X-02, X-24: and neither the question nor its answer is an event of the turn."""
    body = app.turn(app.session(), "ask delete everything").json()
    assert [event["type"] for event in body["events"]] == ["tool_call", "tool_update", "text", "response"]
    assert body["events"][2]["content"] == "permission: allow_once"


def test_a_session_at_work_is_on_top_of_the_list(app: App) -> None:
    """S3-34: the question is a gate, so that its turn goes on after the other session was made."""

    def newest() -> dict[str, Any]:
        return dict(app.http.get("/api/sessions").json()[0])

    working = app.session(permission_mode="ask")
    queue(app, working, "ask go on\necho gone on\nhang")
    gate = pending(app, working)["permission_id"]
    other = app.session()
    assert newest()["session_id"] == other
    app.http.post(f"/sessions/{working}/permissions/{gate}", json={"decision": "allow_once"})
    until(lambda: "gone on" in text(app, working, 1), "the words after the gate")
    assert newest()["session_id"] == working
    assert app.http.get(f"/sessions/{working}").json()["running_turn"] == 1


def test_nobody_answers_and_the_request_expires_with_a_reason(start: Callable[..., Server]) -> None:
    server = start(PERMISSION_TIMEOUT_SECS="0.3")
    app = server.app()
    session_id = app.session(permission_mode="ask")
    assert app.turn(session_id, "ask anything").status_code == 200
    assert "reject" in text(app, session_id, 1)
    row = app.http.get(f"/sessions/{session_id}/permissions").json()["permissions"][0]
    assert (row["state"], row["decision"]) == ("expired", "expired")
    assert row["reason"] == "nobody answered within 0.3 s"
    path = f"/sessions/{session_id}/permissions/{row['permission_id']}"
    assert app.http.post(path, json={"decision": "allow_once"}).status_code == 409


def test_a_request_does_not_outlive_the_server(start: Callable[..., Server]) -> None:
    server = start()
    app = server.app()
    session_id = app.session(permission_mode="ask")
    queue(app, session_id, "ask anything")
    row = pending(app, session_id)
    server.stop(signal.SIGKILL)
    server.start()
    client = server.client(app.token)
    found = client.get(f"/sessions/{session_id}/permissions").json()["permissions"]
    assert [(one["permission_id"], one["state"]) for one in found] == [(row["permission_id"], "expired")]
    assert found[0]["reason"]
    late = client.post(
        f"/sessions/{session_id}/permissions/{row['permission_id']}", json={"decision": "reject"}
    )
    assert (late.status_code, late.json()["code"]) == (409, "already_decided")
    turn = client.get(f"/sessions/{session_id}/turns").json()["turns"][0]
    assert (turn["state"], turn["outcome"]) == ("ended", "interrupted")
