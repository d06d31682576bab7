"""Prompts in the queue are changed and moved, or run as they were; nothing in between."""

import signal
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from clawdforge import Forge
from clawdforge.client.errors import Conflict, TurnNotQueued
from clawdforge.core.clock import SystemClock
from clawdforge.upkeep.deep import examine_deep
from clawdforge.upkeep.doctor import Finding
from tests.api.harness import App, Server, until


def submit(app: App, session_id: str, prompt: str, **body: Any) -> int:
    reply = app.http.post(f"/sessions/{session_id}/turns", json={"prompt": prompt, **body})
    assert reply.status_code == 202, reply.text
    return int(reply.json()["turn_index"])


def change(app: App, session_id: str, turn: int, **body: Any) -> httpx2.Response:
    return app.http.patch(f"/sessions/{session_id}/turns/{turn}", json=body)


def turns(app: App, session_id: str) -> dict[int, dict[str, Any]]:
    return {
        turn["turn_index"]: turn for turn in app.http.get(f"/sessions/{session_id}/turns").json()["turns"]
    }


def places(app: App, session_id: str) -> list[int]:
    """The queue as `GET turns` shows it, the next one first."""
    waiting = [turn for turn in turns(app, session_id).values() if turn["position"] is not None]
    assert sorted(turn["position"] for turn in waiting) == list(range(len(waiting)))
    return [turn["turn_index"] for turn in sorted(waiting, key=lambda turn: turn["position"])]


def run_queue(app: App, session_id: str) -> list[str]:
    """Let the queue run, and tell what was said in which order."""
    app.http.post(f"/sessions/{session_id}/cancel")
    until(
        lambda: all(turn["state"] == "ended" for turn in turns(app, session_id).values()), "the queue's end"
    )
    messages = app.http.get(f"/sessions/{session_id}/messages").json()["messages"]
    return [message["content"] for message in messages if message["role"] == "user"][1:]


@pytest.fixture
def busy(app: App) -> str:
    """A session whose first turn runs, with three prompts behind it: turns 2, 3 and 4."""
    return make_busy(app)


def make_busy(app: App) -> str:
    session_id = app.session()
    submit(app, session_id, "hang")
    for name in ("two", "three", "four"):
        submit(app, session_id, f"echo {name}")
    until(lambda: has_begun(app, session_id), "its agent")  # whose start is told beside all else
    return session_id


def has_begun(app: App, session_id: str) -> bool:
    events = app.http.get(f"/sessions/{session_id}/events").json()["events"]
    return any(event["type"] == "context.started" for event in events)


def test_a_queued_prompt_is_changed_and_then_runs_so(app: App, busy: str) -> None:
    reply = change(app, busy, 3, prompt="echo 3 again", expected_prompt="echo three")
    assert reply.status_code == 200, reply.text
    found = reply.json()
    assert (found["ok"], found["session_id"], found["turn_index"]) == (True, busy, 3)
    assert (found["prompt"], found["state"], found["position"]) == ("echo 3 again", "queued", 1)
    assert turns(app, busy)[3]["prompt"] == "echo 3 again"
    events = app.http.get(f"/sessions/{busy}/events").json()["events"]
    (told,) = [event for event in events if event["type"] == "turn.changed"]
    assert (told["turn"], told["prompt"]) == (3, "echo 3 again")
    assert "position" not in told
    assert run_queue(app, busy) == ["echo two", "echo 3 again", "echo four"]


@pytest.mark.parametrize(
    ("turn", "position", "order"),
    [
        (4, 0, [4, 2, 3]),
        (4, 1, [2, 4, 3]),
        (2, 2, [3, 4, 2]),
        (2, 1000, [3, 4, 2]),
        (3, 1, [2, 3, 4]),
    ],
)
def test_the_order_is_seen_by_readers_and_by_who_runs_it(
    app: App, busy: str, turn: int, position: int, order: list[int]
) -> None:
    names = {2: "echo two", 3: "echo three", 4: "echo four"}
    reply = change(app, busy, turn, position=position)
    assert reply.json()["position"] == order.index(turn)
    assert places(app, busy) == order
    assert run_queue(app, busy) == [names[index] for index in order]


def test_later_prompts_come_after_and_those_that_interrupt_before(app: App, busy: str) -> None:
    change(app, busy, 4, position=0)
    last = submit(app, busy, "echo five")
    assert places(app, busy) == [4, 2, 3, last]
    change(app, busy, 2, position=3)
    assert places(app, busy) == [4, 3, last, 2]
    app.http.delete(f"/sessions/{busy}/turns/3")
    assert places(app, busy) == [4, last, 2]
    first = submit(app, busy, "hang", if_busy="interrupt")
    until(lambda: turns(app, busy)[first]["state"] == "running", "the interrupting turn's start")
    assert places(app, busy) == [4, last, 2]


def test_an_order_survives_a_kill(start: Callable[..., Server]) -> None:
    server = start()
    app = server.app()
    session_id = make_busy(app)
    change(app, session_id, 4, position=0, prompt="hang")
    server.stop(signal.SIGKILL)
    assert find_bad(server) == []
    with sqlite3.connect(server.database) as db:
        db.execute("UPDATE sessions SET queue_order = '[2, 3, 4]'")
    (lost,) = find_bad(server)
    assert "the order of its queue is not what the log says" in lost.text
    assert find_bad(server, repair=True) == find_bad(server) == []
    server.start()
    app = App(app.name, app.token, app.token_id, server.client(app.token))
    until(lambda: turns(app, session_id)[4]["state"] == "running", "the moved turn's start")
    assert places(app, session_id) == [2, 3]
    assert run_queue(app, session_id)[-2:] == ["echo two", "echo three"]
    server.stop()
    assert find_bad(server) == [], "the log tells the changed prompt too"


def find_bad(server: Server, *, repair: bool = False) -> list[Finding]:
    found = examine_deep(server.database.parent, SystemClock(), repair=repair)
    return [one for one in found if one.level == "bad"]


def test_a_turn_that_has_begun_or_ended_stays_as_it_is(app: App, busy: str) -> None:
    running = change(app, busy, 1, prompt="echo other")
    assert (running.status_code, running.json()["code"]) == (409, "turn_not_queued")
    assert "runs already" in running.json()["error"]
    app.http.delete(f"/sessions/{busy}/turns/2")
    ended = change(app, busy, 2, position=0)
    assert (ended.status_code, ended.json()["code"]) == (409, "turn_not_queued")
    assert "has ended" in ended.json()["error"]
    assert change(app, busy, 9, prompt="x").status_code == 404
    assert turns(app, busy)[1]["prompt"] == "hang"


def test_of_two_editors_one_is_told(app: App, busy: str) -> None:
    assert change(app, busy, 2, prompt="mine", expected_prompt="echo two").status_code == 200
    late = change(app, busy, 2, prompt="yours", position=2, expected_prompt="echo two")
    assert (late.status_code, late.json()["code"], late.json()["prompt"]) == (409, "conflict", "mine")
    assert places(app, busy) == [2, 3, 4], "nothing of it was done"


@pytest.mark.parametrize(
    "body", [{"prompt": ""}, {"position": -1}, {"position": 1.5}, {"files": ["x"] * 257}, {"prompt": 7}]
)
def test_a_change_is_checked(app: App, busy: str, body: dict[str, Any]) -> None:
    assert change(app, busy, 2, **body).status_code == 422


def test_files_are_changed_and_kept_for_the_turn(app: App, busy: str) -> None:
    token = app.http.post("/files", files={"file": ("a.txt", b"hello")}).json()["file_token"]
    assert change(app, busy, 2, files=["nothing"]).json()["code"] == "unknown_file"
    assert change(app, busy, 2, files=[token]).json()["files"] == [token]
    assert change(app, busy, 2, prompt="echo b").json()["files"] == [token]
    assert change(app, busy, 2, files=[]).json()["files"] == []


def test_nothing_new_is_no_event(app: App, busy: str) -> None:
    same = change(app, busy, 2, prompt="echo two", files=[], position=0)
    assert same.status_code == 200
    assert change(app, busy, 2).status_code == 200
    events = app.http.get(f"/sessions/{busy}/events").json()["events"]
    assert "turn.changed" not in [event["type"] for event in events]


def test_a_change_and_a_start_at_once_leave_one_truth(app: App) -> None:
    """Whoever is told 200 runs so, and whoever is told 409 runs as before."""
    for _ in range(8):
        session_id = app.session()
        submit(app, session_id, "hang")
        submit(app, session_id, "echo old")
        until(lambda one=session_id: turns(app, one)[1]["state"] == "running", "a place for its agent")  # type: ignore[misc]
        gate = threading.Barrier(2)

        def edit(session_id: str = session_id, gate: threading.Barrier = gate) -> int:
            gate.wait()
            return change(app, session_id, 2, prompt="echo new").status_code

        def let_go(session_id: str = session_id, gate: threading.Barrier = gate) -> None:
            gate.wait()
            app.http.post(f"/sessions/{session_id}/cancel")

        with ThreadPoolExecutor(2) as pool:
            edited, freed = pool.submit(edit), pool.submit(let_go)
            freed.result(30)
            status = edited.result(30)
        assert run_queue(app, session_id) == ["echo new" if status == 200 else "echo old"]
        assert status in (200, 409)


def test_the_sdk_changes_a_turn(server: Server, app: App, busy: str) -> None:
    with Forge(server.url, app.token) as forge:
        session = forge.attach(busy)
        found = session.change_turn(4, prompt="echo first", position=0)
        assert (found.prompt, found.position) == ("echo first", 0)
        with pytest.raises(Conflict, match="somebody else"):
            session.change_turn(4, prompt="x", expected_prompt="echo four")
        with pytest.raises(TurnNotQueued):
            session.change_turn(1, prompt="x")
        assert [turn.position for turn in session.turns()] == [None, 1, 2, 0]
