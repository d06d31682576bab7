"""The operator's pause: exact, durable, told to those whom it concerns, and nobody else's matter."""

import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from clawdforge import AsyncForge, Forge
from clawdforge.client.errors import Paused
from clawdforge.wire.pauses import PausePage, PauseReply, ResumeReply
from tests.api.harness import ADMIN_TOKEN, App, Server, until

SLOW = "echo slow\nsleep 30"


def pause(server: Server, **body: Any) -> PauseReply:
    reply = server.admin().post("/admin/pause", json=body)
    assert reply.status_code == 200, reply.text
    return PauseReply.model_validate(reply.json())


def resume(server: Server, **body: Any) -> ResumeReply:
    reply = server.admin().post("/admin/resume", json=body)
    assert reply.status_code == 200, reply.text
    return ResumeReply.model_validate(reply.json())


def submit(app: App, session_id: str, prompt: str = "echo hi") -> httpx2.Response:
    return app.http.post(f"/sessions/{session_id}/turns", json={"prompt": prompt})


def turns(app: App, session_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = app.http.get(f"/sessions/{session_id}/turns").json()["turns"]
    return found


def states(app: App, session_id: str) -> list[tuple[str, str | None]]:
    return [(turn["state"], turn["outcome"]) for turn in turns(app, session_id)]


def hold(app: App) -> str:
    """A session with a turn that runs and one that waits."""
    session_id = app.session()
    submit(app, session_id, SLOW)
    until(lambda: states(app, session_id)[0][0] == "running", "the first turn")
    with app.stream(f"/sessions/{session_id}/events") as stream:
        stream.upto("text")
    assert submit(app, session_id, "echo after").status_code == 202
    return session_id


def at_work(server: Server) -> list[str]:
    """The sessions in which something is done, or waits for anything but a pause."""
    found = server.admin().get("/admin/stuck", params={"secs": 0}).json()["sessions"]
    return [one["session_id"] for one in found]


def again(server: Server, app: App) -> App:
    """The same app after a restart, at the new address."""
    return App(app.name, app.token, app.token_id, server.client(app.token))


def ledger(server: Server) -> list[tuple[str, str]]:
    entries: list[tuple[str, str]] = []
    after: int | None = 0
    while after is not None:
        page = server.admin().get("/admin/audit", params={"after": after, "limit": 500}).json()
        entries += [(entry["event"], entry["app_name"]) for entry in page["entries"]]
        after = page["next"]
    return entries


def test_a_paused_server_refuses_prompts_and_says_why(start: Callable[..., Server]) -> None:
    server = start()
    app = server.app()
    session_id = app.session()
    app.turn(session_id, "echo before")
    made = pause(server, reason="the bill")
    assert (made.pause.app_name, made.pause.agent, made.pause.reason, made.stopped) == (
        None,
        None,
        "the bill",
        0,
    )
    for reply in (
        app.turn(session_id, "echo no"),
        submit(app, session_id),
        app.http.post(f"/sessions/{session_id}/retry", json={"run": True}),
        app.http.post(f"/sessions/{session_id}/compact", json={}),
        app.http.post("/run", json={"prompt": "say no"}),
        app.http.post("/api/chat/start", json={"session_id": session_id, "message": "no"}),
    ):
        body = reply.json()
        assert (reply.status_code, body["code"], body["reason"]) == (503, "paused", "the bill"), reply.text
        assert "paused this server (the bill)" in body["error"]
        assert "send this again when it was resumed" in body["error"]
        assert reply.headers["Retry-After"] == "60"
    assert [turn["outcome"] for turn in turns(app, session_id)] == ["completed"], "nothing was cut either"
    assert app.http.get("/healthz").json()["paused"] is True
    assert app.http.get("/readyz").status_code == 200, "reads go on"
    assert app.http.get(f"/sessions/{session_id}").json()["paused"]["reason"] == "the bill"
    assert resume(server).resumed
    assert app.turn(session_id, "echo yes").status_code == 200
    assert app.http.get("/healthz").json()["paused"] is False
    assert app.http.get(f"/sessions/{session_id}").json()["paused"] is None


def test_what_was_accepted_before_stays_accepted(server: Server, app: App) -> None:
    session_id, key = app.session(), {"Idempotency-Key": "once"}
    path, body = f"/sessions/{session_id}/turns", {"prompt": "echo once"}
    assert app.http.post(path, json=body, headers=key).status_code == 202
    pause(server, app_name=app.name)
    replayed = app.http.post(path, json=body, headers=key)
    assert (replayed.status_code, replayed.json()["replayed"]) == (202, True)
    resume(server, app_name=app.name)


def test_after_the_answer_no_turn_starts_however_many_are_sent(start: Callable[..., Server]) -> None:
    """The audit has the starts and the pause in the order of their commits."""
    server = start(MAX_LIVE_AGENTS="4")
    app = server.app()
    sessions = [app.session() for _ in range(4)]
    accepted: Counter[str] = Counter()
    refused = threading.Barrier(5)

    def send(session_id: str) -> None:
        with server.client(app.token) as client:
            while True:
                reply = client.post(f"/sessions/{session_id}/turns", json={"prompt": "echo x"}, timeout=60)
                if reply.status_code == 503:
                    break
                assert reply.status_code == 202, reply.text
                accepted[session_id] += 1
        refused.wait(60)

    senders = [threading.Thread(target=send, args=(session_id,)) for session_id in sessions]
    for sender in senders:
        sender.start()
    until(lambda: sum(accepted.values()) > 60, "some prompts")
    pause(server)
    refused.wait(60)
    for sender in senders:
        sender.join()
    until(
        lambda: all(app.http.get(f"/sessions/{one}").json()["running_turn"] is None for one in sessions),
        "the end of what ran",
    )
    entries = [event for event, _ in ledger(server)]
    assert entries.count("paused") == 1
    assert entries[entries.index("paused") :] == ["paused"], "no turn began after it"
    left = [app.http.get(f"/sessions/{one}").json()["queued_turns"] for one in sessions]
    assert sum(left) + entries.count("turn") == sum(accepted.values())
    assert sum(left), "the senders were faster than the agents"
    resume(server)
    until(
        lambda: not any(app.http.get(f"/sessions/{one}").json()["queued_turns"] for one in sessions),
        "the queues",
        120,
    )
    for one in sessions:
        until(lambda: {state for state, _ in states(app, one)} == {"ended"}, "the last turn")  # noqa: B023 - asked at once
        total = app.http.get(f"/sessions/{one}").json()["turn_count"]
        assert total == accepted[one]


def test_the_queue_waits_and_goes_on_after_it(server: Server, app: App) -> None:
    session_id = hold(app)
    pause(server, app_name=app.name, reason="lunch")
    app.http.post(f"/sessions/{session_id}/cancel", json={})
    until(lambda: session_id not in at_work(server), "its worker has looked at the queue")
    state = app.http.get(f"/sessions/{session_id}").json()
    assert (state["running_turn"], state["queued_turns"], state["paused"]["reason"]) == (None, 1, "lunch")
    assert states(app, session_id) == [("ended", "cancelled"), ("queued", None)]
    assert resume(server, app_name=app.name).resumed
    until(lambda: states(app, session_id)[1] == ("ended", "completed"), "the second turn")


def test_it_holds_across_a_restart(start: Callable[..., Server]) -> None:
    server = start(STOP_GRACE_SECS="0.1")
    app = server.app()
    session_id = hold(app)
    pause(server, reason="overnight")
    server.stop()
    server.start()
    app = again(server, app)
    until(lambda: states(app, session_id)[0] == ("ended", "interrupted"), "recovery")
    assert submit(app, session_id).json()["reason"] == "overnight"
    assert states(app, session_id)[1] == ("queued", None)
    assert [event for event, _ in ledger(server)][-1] == "paused", "nothing was started by the new server"
    resume(server)
    until(lambda: states(app, session_id)[1] == ("ended", "completed"), "the second turn")


def test_with_stop_what_runs_is_cancelled_and_its_words_stay(server: Server, app: App, other: App) -> None:
    sessions, bystander = [hold(app), hold(app)], hold(other)
    made = pause(server, app_name=app.name, stop=True)
    assert made.stopped == 2
    for session_id in sessions:
        assert states(app, session_id) == [("ended", "cancelled"), ("queued", None)]
        messages = app.http.get(f"/sessions/{session_id}/messages").json()["messages"]
        assert messages[-1]["content"] == "slow"
    assert states(other, bystander) == [("running", None), ("queued", None)]
    resume(server, app_name=app.name)
    for session_id in sessions:
        until(lambda: states(app, session_id)[1] == ("ended", "completed"), "it goes on")  # noqa: B023 - asked at once
    other.http.post(f"/sessions/{bystander}/cancel", json={"queued": True})


def test_an_app_that_is_paused_is_alone(server: Server, app: App, other: App) -> None:
    mine, theirs = app.session(), other.session()
    pause(server, app_name=app.name, reason="unpaid")
    assert submit(app, mine).status_code == 503
    assert other.turn(theirs, "echo hi").status_code == 200
    told = app.http.get("/limits").json()["paused"]
    assert [(one["app_name"], one["agent"], one["reason"]) for one in told] == [(app.name, None, "unpaid")]
    assert other.http.get("/limits").json()["paused"] == []
    assert app.http.get("/healthz").json()["paused"] is False
    rows = {row["app_name"]: row["paused"] for row in server.admin().get("/admin/apps").json()["apps"]}
    assert rows[app.name]["reason"] == "unpaid"
    assert rows[other.name] is None
    assert (resume(server).resumed, submit(app, mine).status_code) == (False, 503), "that was another pause"
    assert resume(server, app_name=app.name).resumed
    assert app.turn(mine, "echo hi").status_code == 200


def test_an_agent_can_be_paused_for_all_or_for_one_app(start: Callable[..., Server]) -> None:
    server = start()
    app, other = server.app(), server.app()
    mine, theirs, demo = app.session(), other.session(), app.session(agent="demo")
    pause(server, agent="claude", reason="bad release")
    assert "paused the agent claude (bad release)" in submit(app, mine).json()["error"]
    assert submit(other, theirs).status_code == 503
    assert app.http.post("/run", json={"prompt": "say no"}).json()["code"] == "paused"
    assert app.turn(demo, "hello").status_code == 200
    agents = {one["name"]: one["paused"] for one in app.http.get("/agents").json()["agents"]}
    assert agents["claude"]["reason"] == "bad release"
    assert agents["demo"] is None
    resume(server, agent="claude")
    pause(server, app_name=app.name, agent="claude")
    assert submit(app, mine).status_code == 503
    assert other.turn(theirs, "echo hi").status_code == 200
    assert app.turn(demo, "hello").status_code == 200


def test_what_waits_goes_on_when_the_session_leaves_a_paused_agent(start: Callable[..., Server]) -> None:
    server = start()
    app = server.app()
    session_id = hold(app)
    pause(server, agent="claude", stop=True)
    until(lambda: states(app, session_id)[0][0] == "ended" and not at_work(server), "the worker's leave")
    assert states(app, session_id)[1][0] == "queued"
    reply = app.http.patch(f"/sessions/{session_id}", json={"agent": "demo"})
    assert reply.status_code == 200, reply.text
    until(lambda: states(app, session_id)[1] == ("ended", "completed"), "the turn that waited")


def test_stop_of_an_agent_leaves_others_running(start: Callable[..., Server]) -> None:
    server = start(AGENT_SECOND=f"{sys.executable} -m clawdforge.scripted")
    app = server.app()
    first, second = hold(app), app.session(agent="second")
    submit(app, second, SLOW)
    until(lambda: states(app, second) == [("running", None)], "the other agent")
    assert pause(server, agent="claude", stop=True).stopped == 1
    assert states(app, first)[0] == ("ended", "cancelled")
    assert states(app, second) == [("running", None)]


def test_a_run_that_is_under_way_is_stopped_as_well(start: Callable[..., Server], tmp_path: Path) -> None:
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    server = start(CLAUDE_BIN=str(program), SANDBOX="off")
    app = server.app()
    replies: list[httpx2.Response] = []
    caller = threading.Thread(target=lambda: replies.append(app.http.post("/run", json={"prompt": "x"})))
    caller.start()
    until(lambda: any((server.data_dir / "runs").glob("*/work")), "the run")
    assert pause(server, stop=True).stopped == 1
    caller.join(60)
    assert (replies[0].status_code, replies[0].json()["code"]) == (503, "paused")


def test_it_is_audited_listed_and_measured(start: Callable[..., Server]) -> None:
    server = start()
    app = server.app()
    pause(server, reason="first")
    pause(server, app_name=app.name)
    since = pause(server, reason="second").pause.since
    page = PausePage.model_validate(server.admin().get("/admin/pauses").json())
    assert [(one.app_name, one.reason) for one in page.pauses] == [(None, "second"), (app.name, None)]
    assert page.pauses[0].since <= since
    metrics = server.admin().get("/metrics").text
    assert 'clawdforge_pauses{of="server"} 1' in metrics
    assert 'clawdforge_pauses{of="app"} 1' in metrics
    assert 'clawdforge_pauses{of="agent"} 0' in metrics
    left = resume(server)
    assert (left.resumed, [one.app_name for one in left.pauses]) == (True, [app.name])
    assert not resume(server).resumed
    assert ledger(server) == [("paused", ""), ("paused", app.name), ("paused", ""), ("resumed", "")]
    entry = server.admin().get("/admin/audit").json()["entries"][0]
    assert entry["details"] == {"agent": None, "reason": "first", "stop": False}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"app_name": "nobody-has-this"}, 404),
        ({"agent": "nobody-has-this"}, 400),
        ({"reason": ""}, 422),
        ({"agent": ""}, 422),
        ({"colour": "red"}, 422),
    ],
)
def test_what_is_not_there_cannot_be_paused(server: Server, body: dict[str, str], status: int) -> None:
    assert server.admin().post("/admin/pause", json=body).status_code == status
    assert server.admin().get("/admin/pauses").json()["pauses"] == []


def test_it_is_the_operators_alone(server: Server, app: App) -> None:
    for method, path in (("POST", "/admin/pause"), ("POST", "/admin/resume"), ("GET", "/admin/pauses")):
        assert app.http.request(method, path, json={}).status_code == 403
        assert server.client().request(method, path, json={}).status_code == 401


def test_the_sdk_pauses_and_meets_a_pause_without_trying_again(server: Server, app: App) -> None:
    with Forge(server.url, app.token) as forge, Forge(server.url, ADMIN_TOKEN) as operator:
        made = operator.admin.pause(app_name=app.name, reason="sdk")
        assert made.pause.app_name == app.name
        with forge.session(agent="claude") as session, pytest.raises(Paused) as refused:
            session.turn("echo hi")
        assert (refused.value.status_code, refused.value.body["reason"]) == (503, "sdk")
        assert app.name in [one.app_name for one in operator.admin.pauses()]
        assert operator.admin.resume(app_name=app.name).resumed


async def test_the_awaiting_sdk_does_the_same(server: Server, app: App) -> None:
    async with AsyncForge(server.url, ADMIN_TOKEN) as operator:
        assert (await operator.admin.pause(app_name=app.name)).stopped == 0
        assert app.name in [one.app_name for one in await operator.admin.pauses()]
        assert (await operator.admin.resume(app_name=app.name)).resumed
