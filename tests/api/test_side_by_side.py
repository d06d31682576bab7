"""Many sessions at once, what a busy session does with a prompt, and agents that sleep and come back."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.api.harness import App, Server, until


def texts(reply: Any) -> list[str]:
    return [event["content"] for event in reply.json()["events"] if event["type"] == "text"]


def outcome(app: App, session: str, turn: int) -> str | None:
    for row in app.http.get(f"/sessions/{session}/turns").json()["turns"]:
        if row["turn_index"] == turn:
            return str(row["outcome"]) if row["outcome"] else None
    return None


def running(app: App, session: str, text: str) -> None:
    """Wait until a turn runs and has said something."""
    until(
        lambda: any(
            event.get("content") == text
            for event in app.http.get(f"/sessions/{session}/events").json()["events"]
        ),
        f"the words {text!r}",
    )


def test_fifty_sessions_side_by_side_keep_their_own_order(start: Callable[..., Server]) -> None:
    app = start(MAX_LIVE_AGENTS="50").app()
    sessions = [app.session() for _ in range(50)]
    slow = app.session()
    blocked = app.http.post(f"/sessions/{slow}/turns", json={"prompt": "hang"})
    assert blocked.status_code == 202

    def converse(session: str) -> list[list[str]]:
        said = []
        for number in range(2):
            reply = app.turn(session, f"echo {number}\nchunks 40")
            assert reply.status_code == 200, reply.text
            events = reply.json()["events"]
            assert [event["seq"] for event in events] == sorted(event["seq"] for event in events)
            said.append(texts(reply))
        return said

    with ThreadPoolExecutor(16) as threads:
        for said in threads.map(converse, sessions[:49]):
            for number, words in enumerate(said):
                assert words == [str(number), *(f"{n} " for n in range(1, 41))]
    for session in sessions[:49]:
        page = app.http.get(f"/sessions/{session}/events?limit=1000").json()["events"]
        assert [event["seq"] for event in page] == list(range(1, len(page) + 1))
    assert app.http.get(f"/sessions/{slow}").json()["running_turn"] == 1, "nobody waited for the hanging turn"
    assert app.http.post(f"/sessions/{slow}/cancel").json()["cancelled"] == 1


def check_long_turns(server: Server) -> None:
    long, other, metrics = server.app(), server.app(), server.admin()
    for _ in range(6):
        sent = long.http.post(f"/sessions/{long.session()}/turns", json={"prompt": "hang"})
        assert sent.status_code == 202
    until(lambda: 'turns{state="running"} 4' in metrics.get("/metrics").text, "four turns run")
    assert texts(other.turn(other.session(), "echo hello")) == ["hello"]
    found = metrics.get("/metrics").text
    assert 'turns{state="running"} 4' in found
    assert 'turns{state="queued"} 2' in found
    for row in long.http.get("/sessions").json()["sessions"]:
        long.http.delete(f"/sessions/{row['session_id']}")


def test_long_turns_of_one_app_keep_no_other_waiting(start: Callable[..., Server]) -> None:
    """Of five places four are for whoever comes first. It holds after a restart as well."""
    server = start(MAX_LIVE_AGENTS="5")
    check_long_turns(server)
    server.stop()
    server.start()
    check_long_turns(server)


def test_forty_chunks_and_the_response_are_forty_one_events(app: App) -> None:
    events = app.turn(app.session(), "chunks 40").json()["events"]
    assert [event["type"] for event in events] == ["text"] * 40 + ["response"]


def test_interrupt_cancels_keeps_what_was_said_and_does_not_wait_behind_the_queue(app: App) -> None:
    session = app.session()
    app.http.post(f"/sessions/{session}/turns", json={"prompt": "echo half\nhang"})
    running(app, session, "half")
    app.http.post(f"/sessions/{session}/turns", json={"prompt": "echo patient"})
    reply = app.turn(session, "echo at once", if_busy="interrupt")
    assert reply.json()["if_busy"] == "interrupt"
    assert texts(reply) == ["at once"]
    assert outcome(app, session, 1) == "cancelled"
    until(lambda: outcome(app, session, 2) == "completed", "the turn that was queued before")
    said = [row["content"] for row in app.http.get(f"/sessions/{session}/messages").json()["messages"]]
    assert said == ["echo half\nhang", "half", "echo at once", "at once", "echo patient", "patient"]


def test_rollback_takes_the_running_turn_back_as_if_it_had_not_been(app: App) -> None:
    session = app.session()
    assert texts(app.turn(session, "echo first")) == ["first"]
    app.http.post(f"/sessions/{session}/turns", json={"prompt": "echo wrong\nhang"})
    running(app, session, "wrong")
    reply = app.turn(session, "recall", if_busy="rollback")
    assert json.loads(texts(reply)[0]) == ["echo first"], "the agent does not know what was rolled back"
    said = [row["content"] for row in app.http.get(f"/sessions/{session}/messages").json()["messages"]]
    assert "wrong" not in said
    assert said[0] == "echo first"


def test_steer_queues_and_says_so(app: App) -> None:
    session = app.session()
    app.http.post(f"/sessions/{session}/turns", json={"prompt": "echo on it\nsleep 0.3"})
    running(app, session, "on it")
    reply = app.turn(session, "echo and this", if_busy="steer")
    assert (reply.json()["if_busy"], texts(reply)) == ("queue", ["and this"])


def test_agents_beyond_the_bound_take_turns_and_come_back_with_their_memory(
    start: Callable[..., Server],
) -> None:
    server = start(MAX_LIVE_AGENTS="2")
    app = server.app()
    sessions = [app.session() for _ in range(5)]
    for session in sessions:
        assert texts(app.turn(session, f"echo {session}")) == [session]
        assert app.http.get("/healthz").json()["live_agents"] <= 2
    for session in sessions:
        assert json.loads(texts(app.turn(session, "recall"))[0]) == [f"echo {session}"]
    kinds = [
        event["how"]
        for event in app.http.get(f"/sessions/{sessions[0]}/events").json()["events"]
        if event["type"] == "context.started"
    ]
    assert kinds == ["new", "loaded"]


def test_an_idle_agent_is_put_to_sleep(start: Callable[..., Server]) -> None:
    app = start(AGENT_IDLE_SECS="0.1").app()
    session = app.session()
    app.turn(session, "echo one")
    until(lambda: app.http.get("/healthz").json()["live_agents"] == 0, "the agent's sleep")
    assert json.loads(texts(app.turn(session, "recall"))[0]) == ["echo one"]


def test_turns_of_a_crowded_app_do_not_keep_another_app_waiting(start: Callable[..., Server]) -> None:
    server = start(MAX_LIVE_AGENTS="1")
    crowded, modest = server.app(), server.app()
    many = [crowded.session() for _ in range(4)]
    for session in many:
        crowded.http.post(f"/sessions/{session}/turns", json={"prompt": "sleep 0.4"})
    mine = modest.session()
    assert modest.turn(mine, "echo hello").status_code == 200
    left = [crowded.http.get(f"/sessions/{session}").json()["turn_count"] for session in many]
    assert 0 in left, "the modest app's turn came before the last of the crowded one's"
