"""How a server stops: with grace, within bounds, at once when told twice, by itself when nobody needs it."""

import concurrent.futures
import signal
import threading
from collections.abc import Callable

import pytest

from tests.api.harness import until
from tests.crash.kit import Forge

pytestmark = pytest.mark.slow
Make = Callable[..., Forge]


def ended_by(crash: Forge, seconds: float) -> int:
    """The exit code of a server that was told to stop."""
    code = crash.server.process.wait(seconds)
    crash.server.stop()
    return code


def test_a_turn_that_ends_in_time_is_answered(forge: Make) -> None:
    crash = forge(STOP_GRACE_SECS="20")
    session_id, other = crash.session(), crash.session()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answer = pool.submit(crash.app.turn, session_id, "echo begun\nsleep 6\necho done")
        crash.seen(session_id, lambda event: event.get("content") == "begun", "the beginning")
        with crash.app.stream(f"/sessions/{other}/events") as idle:
            idle.upto("session.created")
            crash.server.process.send_signal(signal.SIGTERM)
            assert [frame.event for frame in idle] == []
            assert not answer.done(), "an idle stream held on until the turn had ended"
        refused = crash.http.post(f"/sessions/{other}/turns", json={"prompt": "echo late"})
        assert (refused.status_code, refused.json()["code"]) == (503, "stopping")
        assert crash.http.get("/readyz").status_code == 503
        reply = answer.result(60)
    assert (reply.status_code, reply.json()["outcome"]) == (200, "completed")
    assert ended_by(crash, 60) == 0
    crash.restart()
    assert [turn["outcome"] for turn in crash.turns(session_id)] == ["completed"]
    assert crash.turns(other) == []
    assert crash.remembered(session_id) == ["echo begun\nsleep 6\necho done"]


def test_a_turn_that_does_not_is_interrupted_and_its_policy_holds(forge: Make) -> None:
    crash = forge(STOP_GRACE_SECS="0.5", CANCEL_GRACE_SECS="1")
    sessions = {policy: crash.session(on_interrupt=policy) for policy in ("hold", "continue", "retry")}
    asking = crash.session(permission_mode="ask")
    prompt = "echo half\nhang"
    for session_id in sessions.values():
        crash.submit(session_id, prompt)
        crash.seen(session_id, lambda event: event.get("content") == "half", "the half answer")
        crash.submit(session_id, "echo queued")
    crash.submit(asking, "ask Leave")
    crash.seen(asking, lambda event: event["type"] == "permission.requested", "the request")
    crash.server.process.send_signal(signal.SIGTERM)
    assert ended_by(crash, 40) == 0
    before = crash.handed()
    assert before["echo queued"] == 0, "a turn began after the stop"
    crash.restart()
    reason = "the server was stopped"
    assert [turn["error"] for turn in crash.turns(asking)] == [reason]
    permissions = crash.http.get(f"/sessions/{asking}/permissions").json()["permissions"]
    assert [(row["state"], row["reason"]) for row in permissions] == [("expired", reason)]
    for policy, session_id in sessions.items():
        if policy == "retry":
            until(lambda: crash.handed()[prompt] == before[prompt] + 1, "the second try")
            crash.http.post(f"/sessions/{session_id}/cancel", json={})
        turns = [crash.ended(session_id, index) for index in range(1, 3 if policy == "hold" else 4)]
        assert [turn["outcome"] for turn in turns[:2]] == ["interrupted", "completed"]
        assert turns[0]["error"] == reason
        crash.check(session_id)
    assert [m["content"] for m in crash.messages(sessions["hold"])] == [
        prompt,
        "half",
        "echo queued",
        "queued",
    ]
    assert crash.handed()["echo queued"] == 3


def test_a_second_signal_is_immediate_and_loses_nothing(forge: Make) -> None:
    crash = forge(STOP_GRACE_SECS="60")
    session_id = crash.session()
    crash.submit(session_id, "echo half\nhang")
    crash.seen(session_id, lambda event: event.get("content") == "half", "the half answer")
    crash.server.process.send_signal(signal.SIGTERM)
    until(lambda: crash.http.get("/readyz").status_code == 503, "the stop")
    assert crash.server.process.poll() is None
    crash.server.process.send_signal(signal.SIGTERM)
    assert ended_by(crash, 40) == 1, "it waited for the turn, as the first signal asks"
    crash.restart()
    assert [m["content"] for m in crash.messages(session_id)] == ["echo half\nhang", "half"]
    assert crash.turns(session_id)[0]["outcome"] == "interrupted"


def test_a_signal_during_the_start_is_not_lost(forge: Make) -> None:
    crash = forge()
    crash.server.stop()
    for wait in (0.0, 0.02, 0.05):
        server = crash.spawn()
        until(lambda pid=server.pid: crash.holder() == pid or None, "the lock")  # type: ignore[misc]
        threading.Event().wait(wait)
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0


def test_a_server_that_nobody_needs_ends_by_itself(forge: Make) -> None:
    crash = forge("--idle-exit", "1.5")
    session_id = crash.session()
    crash.submit(session_id, "sleep 2.5\necho done")
    crash.http.close()
    assert ended_by(crash, 60) == 0
    crash.restart()
    assert [turn["outcome"] for turn in crash.turns(session_id)] == ["completed"]
    with crash.app.stream(f"/sessions/{session_id}/events") as stream:
        stream.upto("turn.ended")
        threading.Event().wait(2.5)  # somebody is reading: longer than it may be idle
        assert crash.server.process.poll() is None
