"""The hermes dialect's chat against a real server: start, stream, resume, cancel, approve, crash."""

import json
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from clawdforge.wire.sse import Frame
from tests.api.harness import App, Server, Stream, until

pytestmark = pytest.mark.on_both


def new(app: App, **body: Any) -> str:
    return str(app.http.post("/api/session/new", json=body).json()["session"]["session_id"])


def start(app: App, session_id: str, message: str, **body: Any) -> httpx2.Response:
    return app.http.post("/api/chat/start", json={"session_id": session_id, "message": message, **body})


def started(app: App, session_id: str, message: str, **body: Any) -> str:
    reply = start(app, session_id, message, **body)
    assert reply.status_code == 200, reply.text
    return str(reply.json()["stream_id"])


def frames(app: App, stream_id: str, headers: dict[str, str] | None = None, **query: Any) -> list[Frame]:
    with app.stream(
        "/api/chat/stream", params={"stream_id": stream_id, **query}, headers=headers or {}
    ) as found:
        assert found.response.status_code == 200, found.response.read()
        return list(found)


def names(found: list[Frame]) -> list[str]:
    return [frame.event for frame in found]


def ids(found: list[Frame]) -> list[str]:
    return [frame.id for frame in found]


def text(found: list[Frame]) -> str:
    return "".join(json.loads(frame.data)["text"] for frame in found if frame.event == "token")


def session(app: App, session_id: str) -> Any:
    return app.http.get("/api/session", params={"session_id": session_id}).json()["session"]


def test_a_turn_streams_under_the_names_that_the_page_knows(app: App) -> None:
    session_id = new(app)
    reply = start(app, session_id, "think let me see\ntool grep\necho found it").json()
    assert reply["stream_id"] == f"{session_id}:1"
    found = frames(app, reply["stream_id"])
    assert names(found) == ["reasoning", "tool", "tool_complete", "token", "done", "stream_end"]
    data = [json.loads(frame.data) for frame in found]
    assert data[0] == {"text": "let me see"}
    assert (data[1]["event_type"], data[1]["name"]) == ("tool.started", "grep")
    assert (data[2]["event_type"], data[2]["is_error"]) == ("tool.completed", False)
    assert (data[2]["tid"], data[2]["name"]) == (data[1]["tid"], "grep")
    assert data[3] == {"text": "found it"}
    done = data[4]["session"]
    assert [message["role"] for message in done["messages"]] == ["user", "assistant"]
    assert done["messages"][1]["reasoning"] == "let me see"
    assert [call["name"] for call in done["tool_calls"]] == ["grep"]
    assert data[4]["usage"]["output_tokens"] > 0
    assert data[5] == {"session_id": session_id}


def test_every_frame_has_an_id_and_the_rest_follows_after_any_of_them(app: App) -> None:
    stream_id = started(app, new(app), "chunks 20\ntool grep\nchunks 5")
    whole = frames(app, stream_id)
    assert all(frame.id.startswith(f"{stream_id}:") for frame in whole)
    assert len(set(ids(whole))) == len(whole)
    for place, frame in enumerate(whole[:-1]):
        after_header = frames(app, stream_id, {"Last-Event-ID": frame.id})
        assert ids(after_header) == ids(whole[place + 1 :])
        assert ids(frames(app, stream_id, after_event_id=frame.id)) == ids(whole[place + 1 :])
    number = whole[7].id.rsplit(":", 1)[1]
    assert ids(frames(app, stream_id, after_seq=number)) == ids(whole[8:])


def test_a_reader_that_resumes_inside_a_tool_call_is_told_its_name(app: App) -> None:
    stream_id = started(app, new(app), "echo x\ntool grep")
    whole = frames(app, stream_id)
    begun = next(frame for frame in whole if frame.event == "tool")
    rest = frames(app, stream_id, after_event_id=begun.id)
    assert rest == whole[whole.index(begun) + 1 :]
    assert json.loads(rest[0].data)["name"] == "grep"


def test_the_later_of_two_cursors_counts_and_a_foreign_one_replays_from_the_start(app: App) -> None:
    """An EventSource that reconnects repeats its old address."""
    stream_id = started(app, new(app), "chunks 10")
    whole = frames(app, stream_id)
    both = frames(app, stream_id, {"Last-Event-ID": whole[5].id}, after_event_id=whole[2].id)
    assert ids(both) == ids(whole[6:])
    for odd in ("x", "-1", f"{stream_id}:9999999", "other:1:5", "٣"):
        assert ids(frames(app, stream_id, after_event_id=odd)) == ids(whole), odd


def test_a_reader_that_has_seen_the_end_is_told_not_to_come_again(app: App) -> None:
    stream_id = started(app, new(app), "echo x")
    last = frames(app, stream_id)[-1]
    query, headers = {"stream_id": stream_id}, {"Last-Event-ID": last.id}
    reply = app.http.get("/api/chat/stream", params=query, headers=headers)
    assert (reply.status_code, reply.content) == (204, b"")


def test_two_readers_get_every_frame(app: App) -> None:
    stream_id = started(app, new(app), "chunks 100 8 2")
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(lambda _: frames(app, stream_id), range(2))
    assert ids(one) == ids(other)
    assert len(text(one).split()) == 100


def test_a_busy_session_refuses_with_the_stream_that_runs(app: App) -> None:
    """X-23."""
    session_id = new(app)
    stream_id = started(app, session_id, "sleep 60")
    reply = start(app, session_id, "echo two")
    assert reply.status_code == 409
    assert reply.json()["error"] == "session already has an active stream"
    assert reply.json()["active_stream_id"] == stream_id
    for path in ("undo", "retry", "clear"):
        refused = app.http.post(f"/api/session/{path}", json={"session_id": session_id})
        assert (refused.status_code, refused.json()["code"]) == (409, "session_busy")
    app.http.get("/api/chat/cancel", params={"stream_id": stream_id})
    assert start(app, session_id, "echo two").status_code == 200


def test_of_many_starts_at_once_one_is_taken(app: App) -> None:
    for _ in range(3):
        session_id = new(app)
        with ThreadPoolExecutor(8) as pool:
            replies = list(pool.map(lambda _: start(app, session_id, "sleep 60"), range(8)))  # noqa: B023
        taken = [reply.json()["stream_id"] for reply in replies if reply.status_code == 200]
        refused = [reply.json()["active_stream_id"] for reply in replies if reply.status_code == 409]
        assert (len(taken), len(refused)) == (1, 7)
        assert set(refused) == set(taken)
        app.http.get("/api/chat/cancel", params={"stream_id": taken[0]})


def test_a_start_with_a_key_can_be_repeated(app: App) -> None:
    session_id, headers = new(app), {"Idempotency-Key": "k"}
    body = {"session_id": session_id, "message": "echo once"}
    replies = [app.http.post("/api/chat/start", json=body, headers=headers) for _ in range(3)]
    assert {reply.json()["stream_id"] for reply in replies} == {f"{session_id}:1"}


def test_what_a_start_needs(app: App, tmp_path: Path) -> None:
    session_id = new(app)
    for body, name in (({"message": "x"}, "session_id"), ({"session_id": session_id}, "message")):
        reply = app.http.post("/api/chat/start", json=body)
        assert (reply.status_code, name in reply.json()["error"]) == (400, True)
    assert start(app, session_id, "").status_code == 400
    assert start(app, "nonexistent_zzz", "x").status_code == 404
    assert start(app, session_id, "x", attachments=["ff_none"]).json()["code"] == "unknown_file"
    assert start(app, session_id, "x", workspace=str(tmp_path)).status_code == 501
    app.http.post(f"/api/sessions/{session_id}/end")
    assert start(app, session_id, "x").status_code == 409


def test_a_start_may_name_a_model_and_files(app: App) -> None:
    session_id = new(app, model="m1")
    upload = app.http.post("/files", files={"file": ("notes.txt", b"hi")}).json()["file_token"]
    workspace = session(app, session_id)["workspace"]
    reply = start(app, session_id, "echo x", model="m2", attachments=[upload], workspace=workspace)
    assert (reply.status_code, reply.json()["effective_model"]) == (200, "m2")
    assert frames(app, reply.json()["stream_id"])[-1].event == "stream_end"
    assert session(app, session_id)["model"] == "m2"


def test_the_running_prompt_is_pending_and_not_among_the_messages(app: App) -> None:
    """S3-30, X-13."""
    session_id = new(app)
    stream_id = started(app, session_id, "echo a\nsleep 60")
    with app.stream("/api/chat/stream", params={"stream_id": stream_id}) as reader:
        first = next(iter(reader))
        assert first.event == "token", first.data
    found = session(app, session_id)
    assert found["is_streaming"] is True
    assert (found["messages"], found["message_count"]) == ([], 0)
    assert found["pending_user_message"] == "echo a\nsleep 60"
    assert found["active_stream_id"] == stream_id
    assert isinstance(found["pending_started_at"], float)
    app.http.get("/api/chat/cancel", params={"stream_id": stream_id})
    found = session(app, session_id)
    assert [message["role"] for message in found["messages"]] == ["user", "assistant"]
    assert (found["pending_user_message"], found["active_stream_id"]) == (None, None)


def test_cancel_ends_its_own_turn_only_and_keeps_what_was_said(app: App, other: App) -> None:
    session_id = new(app)
    first = started(app, session_id, "echo kept\nsleep 60")
    with app.stream("/api/chat/stream", params={"stream_id": first}) as reader:
        frame = next(iter(reader))
        assert json.loads(frame.data) == {"text": "kept"}
        foreign = other.http.get("/api/chat/cancel", params={"stream_id": first})
        assert foreign.json() == {"ok": True, "cancelled": False, "stream_id": first}
        reply = app.http.get("/api/chat/cancel", params={"stream_id": first}).json()
        assert reply == {"ok": True, "cancelled": True, "stream_id": first}
        assert names(list(reader)) == ["cancel"]
    assert session(app, session_id)["messages"][1]["content"] == "kept"
    second = started(app, session_id, "sleep 60")
    for stale in (first, "nonexistent_zzz", f"{session_id}:99", f"{session_id}:x"):
        assert app.http.get("/api/chat/cancel", params={"stream_id": stale}).json()["cancelled"] is False
    assert app.http.get("/api/chat/stream/status", params={"stream_id": second}).json()["active"] is True
    app.http.get("/api/chat/cancel", params={"stream_id": second})
    assert app.http.get("/api/chat/cancel").status_code == 400


def test_a_queued_turn_can_be_streamed_and_cancelled(app: App) -> None:
    session_id = new(app)
    first = started(app, session_id, "sleep 60")
    app.http.post(f"/sessions/{session_id}/turns", json={"prompt": "echo later"})
    app.http.post(f"/sessions/{session_id}/turns", json={"prompt": "echo never"})
    gone = app.http.get("/api/chat/cancel", params={"stream_id": f"{session_id}:3"}).json()
    assert gone["cancelled"] is True
    assert names(frames(app, f"{session_id}:3")) == ["cancel"]
    with app.stream("/api/chat/stream", params={"stream_id": f"{session_id}:2"}) as reader:
        app.http.get("/api/chat/cancel", params={"stream_id": first})
        assert names(list(reader)) == ["token", "done", "stream_end"]


def test_the_state_of_a_stream(app: App) -> None:
    session_id = new(app)
    stream_id = started(app, session_id, "echo x")
    last = frames(app, stream_id)[-1]
    found = app.http.get("/api/chat/stream/status", params={"stream_id": stream_id}).json()
    assert (found["active"], found["replay_available"]) == (False, True)
    assert (found["journal"]["terminal_state"], found["journal"]["last_event_id"]) == ("completed", last.id)
    none = app.http.get("/api/chat/stream/status", params={"stream_id": "nonexistent_zzz"}).json()
    assert (none["active"], none["replay_available"]) == (False, False)


def test_an_unknown_and_a_foreign_stream_are_the_same_404(app: App, other: App) -> None:
    mine = started(app, new(app), "echo x")
    unknown = other.http.get("/api/chat/stream", params={"stream_id": "nonexistent_zzz:1"})
    assert (unknown.status_code, unknown.json()["error"]) == (404, "stream not found")
    for stream_id in (mine, "x", f"{mine}9", f"{mine}:1", ":1", "x:"):
        assert other.http.get("/api/chat/stream", params={"stream_id": stream_id}).content == unknown.content


def test_a_failing_agent_closes_the_stream_with_its_words(app: App) -> None:
    """S3-40: the session stays usable."""
    session_id = new(app)
    found = frames(app, started(app, session_id, "echo before\nerror the model is gone"))
    assert names(found) == ["token", "apperror"]
    assert "the model is gone" in json.loads(found[1].data)["message"]
    assert frames(app, started(app, session_id, "echo after"))[-1].event == "stream_end"


@pytest.mark.parametrize(
    ("choice", "outcome"), [("once", "allow"), ("session", "allow"), ("always", "allow"), ("deny", "reject")]
)
def test_an_approval_is_asked_for_and_answered(app: App, choice: str, outcome: str) -> None:
    session_id = new(app, permission_mode="ask")
    stream_id = started(app, session_id, "ask delete everything")
    with app.stream("/api/chat/stream", params={"stream_id": stream_id}) as reader:
        asked = json.loads(reader.upto("approval")[-1].data)
        pending = app.http.get("/api/approval/pending", params={"session_id": session_id}).json()
        assert (pending["pending_count"], pending["pending"]) == (1, asked)
        assert asked["command"] == "delete everything"
        body = {"session_id": session_id, "choice": choice, "approval_id": asked["approval_id"]}
        reply = app.http.post("/api/approval/respond", json=body)
        assert reply.json() == {"ok": True, "choice": choice, "resolved": True}
        assert f"permission: {outcome}" in text(list(reader))
    again = app.http.post("/api/approval/respond", json=body)
    assert (again.status_code, again.json()["code"]) == (409, "already_decided")
    none = app.http.get("/api/approval/pending", params={"session_id": session_id}).json()
    assert (none["pending"], none["pending_count"]) == (None, 0)


def test_an_answer_without_an_id_is_for_the_oldest_request(app: App, other: App) -> None:
    session_id = new(app, permission_mode="ask")
    none = app.http.post("/api/approval/respond", json={"session_id": session_id})
    assert (none.status_code, none.json()["resolved"]) == (200, False)
    stream_id = started(app, session_id, "ask one")
    pending = {"session_id": session_id}
    until(lambda: app.http.get("/api/approval/pending", params=pending).json()["pending"], "the request")
    foreign = other.http.post("/api/approval/respond", json={**pending, "choice": "once"})
    assert (foreign.status_code, foreign.json()["resolved"]) == (200, False)
    assert other.http.get("/api/approval/pending", params=pending).json()["pending"] is None
    odd = app.http.post("/api/approval/respond", json={**pending, "choice": "maybe"})
    assert odd.status_code == 400
    assert app.http.post("/api/approval/respond", json={**pending, "choice": "once"}).status_code == 200
    assert names(frames(app, stream_id))[-1] == "stream_end"


@pytest.fixture
def crashing(start: Callable[..., Server]) -> Server:
    return start("--trust-loopback")


def test_after_a_crash_the_prompt_and_the_stream_are_still_there(crashing: Server) -> None:
    """S3-31, S3-32, S3-50, S3-51, S3-52, S3-53: and nothing claims to be running."""
    client = crashing.client()
    made = client.post("/api/session/new", json={}).json()["session"]["session_id"]
    body = {"session_id": made, "message": "chunks 20\nsleep 60"}
    stream_id = client.post("/api/chat/start", json=body).json()["stream_id"]
    before: list[Frame] = []
    with client.stream("GET", "/api/chat/stream", params={"stream_id": stream_id}) as response:
        for frame in Stream(response):
            before.append(frame)
            if len(before) == 20:
                break
    crashing.stop(signal.SIGKILL)
    crashing.start()
    client = crashing.client()
    found = client.get("/api/session", params={"session_id": made}).json()["session"]
    assert (found["pending_user_message"], found["active_stream_id"]) == (body["message"], stream_id)
    status = client.get("/api/session/status", params={"session_id": made}).json()
    assert status["agent_running"] is False
    with client.stream(
        "GET",
        "/api/chat/stream",
        params={"stream_id": stream_id},
        headers={"Last-Event-ID": before[-1].id},
    ) as response:
        rest = list(Stream(response))
    assert names(rest) == ["apperror"]
    assert json.loads(rest[0].data)["type"] == "interrupted"
    assert text(before) == "".join(f"{n} " for n in range(1, 21))
    again = client.post("/api/chat/start", json={"session_id": made, "message": "recall"})
    assert again.status_code == 200
    with client.stream("GET", "/api/chat/stream", params={"stream_id": f"{made}:2"}) as response:
        assert names(list(Stream(response)))[-1] == "stream_end"
    found = client.get("/api/session", params={"session_id": made}).json()["session"]
    assert [message["content"] for message in found["messages"]].count(body["message"]) == 1
    assert (found["pending_user_message"], found["active_stream_id"]) == (None, None)
