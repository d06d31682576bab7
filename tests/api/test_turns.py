"""Turns over HTTP: the whole answer, failures, keys, the queue (S0.4)."""

import concurrent.futures
from pathlib import Path

import orjson
import pytest

from clawdforge.wire.turn import TurnReply
from tests.api.harness import App, Server, until

pytestmark = pytest.mark.on_both


def test_a_round_trip(app: App) -> None:
    """S0-30, S0-31, S0-32, S0-33, S0-34, S0-35, S1-15, X-01, X-02."""
    session_id = app.session()
    reply = app.turn(session_id, "echo hello")
    body = reply.json()
    assert reply.status_code == 200, reply.text
    assert (body["ok"], body["session_id"], body["turn_index"]) == (True, session_id, 1)
    assert body["stop_reason"] == "end_turn"
    assert isinstance(body["duration_ms"], int)
    assert len(body["events"]) == 2, body["events"]
    text, response = body["events"]
    assert text["method"] == "session/update"
    assert text["params"]["content"] == {"type": "text", "text": "hello"}
    assert text["params"]["sessionUpdate"] == "agent_message_chunk"
    assert text["params"]["update"]["content"] == text["params"]["content"]
    assert (text["type"], text["content"]) == ("text", "hello")
    assert response["result"]["stopReason"] == body["stop_reason"]
    assert TurnReply.model_validate(body).outcome == "completed"
    state = app.http.get(f"/sessions/{session_id}").json()
    assert state["turn_count"] == 1
    assert state["last_turn_at"] is not None
    again = app.turn(session_id, "stop refusal").json()
    assert (again["turn_index"], again["stop_reason"]) == (2, "refusal")


def test_turns_of_a_session_run_one_after_another(app: App) -> None:
    """S0-36."""
    session_id = app.session()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda n: app.turn(session_id, f"chunks 3 8 20\necho {n}"), range(4)))
    assert sorted(reply.json()["turn_index"] for reply in replies) == [1, 2, 3, 4]
    events = app.http.get(f"/sessions/{session_id}/events", params={"limit": 1000}).json()["events"]
    running: set[int] = set()
    for event in events:
        if event["type"] == "turn.started":
            assert not running
            running.add(event["turn"])
        elif event["type"] == "turn.ended":
            running.remove(event["turn"])


def test_an_unknown_file_is_400(app: App) -> None:
    """S0-43, S0-44."""
    reply = app.turn(app.session(), "hi", files=["ff_xyz"], timeout_secs=30)
    assert (reply.status_code, reply.json()["code"]) == (400, "unknown_file")


def test_a_failing_agent_is_502_with_its_own_words_and_the_session_goes_on(app: App) -> None:
    """S0-44, S3-40."""
    session_id = app.session()
    reply = app.turn(session_id, "error the model is on fire")
    assert reply.status_code == 502, reply.text
    assert "the model is on fire" in reply.json()["error"]
    assert reply.json()["ok"] is False
    assert app.turn(session_id, "echo fine").json()["events"][0]["content"] == "fine"


def test_an_agent_that_dies_in_a_turn_is_502_and_the_session_goes_on(app: App) -> None:
    session_id = app.session()
    assert app.turn(session_id, "stderr 40\ncrash 7").status_code == 502
    assert app.turn(session_id, "echo fine").status_code == 200


def test_a_time_limit_is_504_and_the_session_goes_on(app: App) -> None:
    """S0-44."""
    session_id = app.session()
    reply = app.turn(session_id, "echo partial\nhang", timeout_secs=0.5)
    assert (reply.status_code, reply.json()["code"]) == (504, "turn_timed_out")
    assert app.turn(session_id, "echo fine").status_code == 200


@pytest.mark.parametrize(
    ("agent", "code"),
    [
        ("missing", "agent_not_installed"),
        ("dies", "agent_start_failed"),
        ("login", "agent_auth_required"),
    ],
)
def test_an_agent_that_does_not_start_is_502(app: App, agent: str, code: str) -> None:
    reply = app.turn(app.session(agent=agent), "hi")
    assert (reply.status_code, reply.json()["code"]) == (502, code), reply.text


def test_an_unknown_agent_is_400(app: App) -> None:
    reply = app.http.post("/sessions", json={"agent": "nobody"})
    assert (reply.status_code, reply.json()["code"]) == (400, "unknown_agent")


def test_a_large_turn_is_streamed_whole(app: App) -> None:
    session_id = app.session()
    body = app.turn(session_id, "flood 300 20000").json()
    assert [event["seq"] for event in body["events"]] == sorted(event["seq"] for event in body["events"])
    assert len(body["events"]) == 301
    assert sum(len(event.get("content") or "") for event in body["events"]) == 300 * 20_000


@pytest.mark.parametrize("chunks", [0, 1, 999, 1000, 1001, 3500])
def test_the_answer_holds_what_the_log_does_however_many_pages_it_takes(app: App, chunks: int) -> None:
    session_id = app.session()
    reply = app.turn(session_id, f"chunks {chunks}")
    assert reply.status_code == 200, reply.text
    log: list[dict[str, object]] = []
    while True:
        params = {"after": len(log), "limit": 1000}
        page = app.http.get(f"/sessions/{session_id}/events", params=params).json()["events"]
        if not page:
            break
        log += page
    said = [event["type"] for event in log if event["type"] == "text"]
    assert len(said) == chunks
    told = [event for event in reply.json()["events"] if event["type"] == "text"]
    assert told == [event for event in log if event["type"] == "text"]


def test_a_prompt_that_follows_at_once_starts_in_the_commit_that_records_it(app: App) -> None:
    session_id = app.session()
    for number in range(40):
        assert app.turn(session_id, f"echo {number}").status_code == 200
    events = app.http.get(f"/sessions/{session_id}/events", params={"limit": 1000}).json()["events"]
    kinds = [event["type"] for event in events]
    assert kinds.count("turn.ended") == 40
    started = [event["ts"] for event in events if event["type"] == "turn.started"]
    queued = [event["ts"] for event in events if event["type"] == "turn.queued"]
    at_once = sum(one == other for one, other in zip(queued, started, strict=True))
    assert at_once > 20, "most had to wait for a second commit"


def test_the_same_key_is_one_turn_and_another_body_is_409(app: App, tmp_path: Path) -> None:
    session_id, witness = app.session(), tmp_path / "said"
    path, prompt = f"/sessions/{session_id}/turn", {"prompt": f"write {witness} once"}
    keyed = {"Idempotency-Key": "k-1"}
    first = app.http.post(path, json=prompt, headers=keyed)
    again = app.http.post(path, json=prompt, headers=keyed)
    assert first.status_code == again.status_code == 200
    assert first.content == again.content
    queued = app.http.post(f"{path}s", json=prompt, headers=keyed).json()
    assert (queued["turn_index"], queued["replayed"], queued["state"]) == (1, True, "ended")
    other = app.http.post(path, json={"prompt": "echo other"}, headers=keyed)
    assert (other.status_code, other.json()["code"]) == (409, "key_reused")
    assert app.http.get(f"/sessions/{session_id}").json()["turn_count"] == 1


@pytest.mark.parametrize("key", ["", "a b", "ä".encode(), "x" * 256, "a\tb"])
def test_a_malformed_key_is_refused(app: App, key: str | bytes) -> None:
    headers = {"Idempotency-Key": key.encode() if isinstance(key, str) else key}
    reply = app.http.post(f"/sessions/{app.session()}/turn", json={"prompt": "hi"}, headers=headers)  # type: ignore[arg-type]
    assert reply.status_code == 422, reply.text


def test_202_means_queued_and_the_turn_runs_by_itself(app: App) -> None:
    session_id = app.session()
    reply = app.http.post(f"/sessions/{session_id}/turns", json={"prompt": "echo later"})
    assert reply.status_code == 202
    assert reply.json()["turn_index"] == 1

    def ended() -> bool:
        turns = app.http.get(f"/sessions/{session_id}/turns").json()["turns"]
        return bool(turns[0]["state"] == "ended" and turns[0]["outcome"] == "completed")

    until(ended, "the turn's end")


def test_busy_is_409_when_the_caller_says_reject(app: App) -> None:
    session_id = app.session()
    app.http.post(f"/sessions/{session_id}/turns", json={"prompt": "hang"})
    until(lambda: app.http.get(f"/sessions/{session_id}").json()["running_turn"], "the turn's start")
    reply = app.turn(session_id, "echo hi", if_busy="reject")
    assert (reply.status_code, reply.json()["code"]) == (409, "session_busy")
    reply = app.http.post(f"/sessions/{session_id}/cancel")
    assert (reply.status_code, reply.json().get("cancelled")) == (200, 1), reply.text


def test_cancel_keeps_what_was_said_and_empties_the_queue_when_asked(app: App) -> None:
    session_id = app.session()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(app.turn, session_id, "echo partial\nhang")
        path = f"/sessions/{session_id}"
        until(lambda: '"type":"text"' in app.http.get(f"{path}/events").text, "the first words")
        for _ in range(2):
            app.http.post(f"{path}/turns", json={"prompt": "echo never"})
        withdrawn = app.http.delete(f"{path}/turns/3")
        assert (withdrawn.status_code, withdrawn.json()["cancelled"]) == (200, 1)
        assert app.http.delete(f"{path}/turns/3").json()["code"] == "turn_not_queued"
        assert app.http.delete(f"{path}/turns/99").status_code == 404
        for body, status in (({"turn": 99}, 404), ({"turn": 0}, 422), ({"turn": 2, "queued": True}, 422)):
            assert app.http.post(f"{path}/cancel", json=body).status_code == status
        assert app.http.post(f"{path}/cancel", json={"turn": 3}).json()["cancelled"] == 0, "another was ended"
        assert app.http.post(f"{path}/cancel", json={"turn": 2}).json()["cancelled"] == 1
        assert not waiting.done()
        app.http.post(f"{path}/turns", json={"prompt": "echo never"})
        assert app.http.post(f"{path}/cancel", json={"queued": True}).json()["cancelled"] == 2
        reply = waiting.result(20)
    assert reply.status_code == 200
    assert (reply.json()["stop_reason"], reply.json()["outcome"]) == ("cancelled", "cancelled")
    assert reply.json()["events"][0]["content"] == "partial"
    turns = app.http.get(f"{path}/turns").json()["turns"]
    assert [turn["outcome"] for turn in turns] == ["cancelled"] * 4
    assert app.turn(session_id, "echo fine").status_code == 200


def test_hanging_up_does_not_cancel_a_turn(app: App, server: Server) -> None:
    session_id = app.session()
    caller = server.client(app.token)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        sent = pool.submit(
            lambda: caller.post(
                f"/sessions/{session_id}/turn", json={"prompt": "sleep 1\necho done"}, timeout=0.4
            )
        )
        assert sent.exception(10) is not None
    caller.close()

    def ended() -> bool:
        found = app.http.get(f"/sessions/{session_id}/turns").json()["turns"]
        return bool(found and found[0]["state"] == "ended")

    until(ended, "the turn's end")
    messages = app.http.get(f"/sessions/{session_id}/messages").json()["messages"]
    assert [message["content"] for message in messages] == ["sleep 1\necho done", "done"]


def test_the_transcript_is_paged(app: App) -> None:
    session_id = app.session()
    for number in range(3):
        app.turn(session_id, f"echo {number}")
    path = f"/sessions/{session_id}/messages"
    page = app.http.get(path, params={"limit": 4}).json()
    assert page["count"] == 4
    rest = app.http.get(path, params={"limit": 4, "after": page["next"]}).json()
    assert (rest["count"], rest["next"]) == (2, None)
    roles = [message["role"] for message in page["messages"] + rest["messages"]]
    assert roles == ["user", "assistant"] * 3


def test_a_permission_waits_for_a_decision_and_takes_one(app: App) -> None:
    session_id = app.session(permission_mode="ask")
    path = f"/sessions/{session_id}"
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(app.turn, session_id, "ask Delete everything execute")
        pending = until(
            lambda: app.http.get(f"{path}/permissions", params={"state": "pending"}).json()["permissions"],
            "the request",
        )
        where = f"{path}/permissions/{pending[0]['permission_id']}"
        assert app.http.post(f"{path}/permissions/nope", json={"decision": "reject"}).status_code == 404
        decided = app.http.post(where, json={"decision": "allow_once"})
        assert decided.json()["permission"]["decision"] == "allow_once"
        assert app.http.post(where, json={"decision": "reject"}).json()["code"] == "already_decided"
        assert waiting.result(20).status_code == 200


def test_odd_text_from_an_agent_arrives_as_valid_json(app: App) -> None:
    session_id = app.session()
    for prompt in ("unicode", "bad-utf8\necho after", "surrogate\necho after", "garbage 3\necho after"):
        reply = app.turn(session_id, prompt)
        assert reply.status_code in (200, 502), reply.text
        orjson.loads(reply.content)
    assert app.http.get(f"/sessions/{session_id}/events", params={"limit": 1000}).json()["ok"] is True


def test_a_turn_with_large_messages_between_small_ones_is_sent_whole(app: App) -> None:
    """They are sent in slices, which must not show."""
    session_id = app.session()
    prompt = "bytes 300000\necho one\necho two\nbytes 400000\nbytes 300000\necho three"
    reply = app.http.post(f"/sessions/{session_id}/turn", json={"prompt": prompt})
    assert reply.status_code == 200, reply.text[:500]
    said = [event["content"] for event in reply.json()["events"] if event["type"] == "text"]
    assert [len(text) if len(text) > 10 else text for text in said] == [
        300_000,
        "one",
        "two",
        400_000,
        300_000,
        "three",
    ]
