"""What a session is doing, over HTTP and in the SDK: one word, a count of questions, a filter of the list."""

import signal
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from clawdforge import Forge
from clawdforge.client.models import Activity
from tests.api.harness import App, Server, until
from tests.api.talk import begin, do, say, state

WORDS = ("idle", "queued", "running", "waiting", "interrupted", "failed")


def doing(app: App, sid: str) -> tuple[str, int, str | None]:
    found = state(app, sid)
    return found["activity"], found["pending_permissions"], found["last_outcome"]


def listed(app: App, **params: Any) -> list[str]:
    reply = app.http.get("/sessions", params=params)
    assert reply.status_code == 200, reply.text
    return [row["session_id"] for row in reply.json()["sessions"]]


def submit(app: App, sid: str, prompt: str) -> None:
    assert app.http.post(f"/sessions/{sid}/turns", json={"prompt": prompt}).status_code == 202


def test_every_activity_is_told_and_found(app: App, other: App) -> None:
    idle, running, waiting, failed = (app.session(permission_mode="ask") for _ in range(4))
    begin(app, running)
    submit(app, waiting, "ask write a file")
    app.turn(failed, "error it broke")
    until(lambda: doing(app, waiting)[0] == "waiting", "the question")
    assert doing(app, idle) == ("idle", 0, None)
    assert doing(app, running) == ("running", 0, None)
    assert doing(app, waiting) == ("waiting", 1, None)
    assert doing(app, failed) == ("failed", 0, "failed")
    expected = {"idle": [idle], "running": [running], "waiting": [waiting], "failed": [failed]}
    for word in WORDS:
        assert listed(app, activity=word) == expected.get(word, []), word
        assert listed(other, activity=word) == []
    for row in app.http.get("/sessions").json()["sessions"]:
        alone = app.http.get(f"/sessions/{row['session_id']}").json()
        assert {name: alone[name] for name in row} == row
    assert listed(app, activity="running", q="begun") == [running]
    assert listed(app, activity="running", state="ended") == []
    assert app.http.get("/sessions", params={"activity": "busy"}).status_code == 422
    do(app, failed, "undo")
    assert doing(app, failed) == ("idle", 0, None)
    do(app, failed, "redo")
    fork = do(app, failed, "fork")["session_id"]
    assert doing(app, fork) == ("failed", 0, "failed")
    say(app, fork, "echo better")
    assert doing(app, fork) == ("idle", 0, "completed")
    for sid in (running, waiting):
        assert do(app, sid, "cancel")["cancelled"] == 1
        until(lambda sid=sid: doing(app, sid) == ("idle", 0, "cancelled"), "the end")  # type: ignore[misc]


def test_what_was_cut_off_is_interrupted_after_a_restart(start: Callable[..., Server]) -> None:
    server = start()
    app = server.app()
    cut, held = app.session(), app.session()
    begin(app, cut)
    say(app, held, "echo well")
    assert [state(app, sid)["activity"] for sid in (cut, held)] == ["running", "idle"]
    server.stop(signal.SIGKILL)
    server.start()
    app = replace(app, http=server.client(app.token))
    assert doing(app, cut) == ("interrupted", 0, "interrupted")
    assert listed(app, activity="interrupted") == [cut]
    assert listed(app, activity="idle") == [held]


def test_a_paused_queue_is_queued(start: Callable[..., Server]) -> None:
    server = start()
    app = server.app()
    sid = app.session()
    begin(app, sid)
    submit(app, sid, "echo later")
    server.admin().post("/admin/pause", json={"app_name": app.name})
    app.http.post(f"/sessions/{sid}/cancel", json={})
    until(lambda: doing(app, sid) == ("queued", 0, "cancelled"), "the end of the first turn")
    assert listed(app, activity="queued") == [sid]
    app.http.post(f"/sessions/{sid}/cancel", json={"queued": True})
    assert doing(app, sid) == ("idle", 0, "cancelled")


def test_the_sdk_filters_by_activity(server: Server, app: App) -> None:
    sid = app.session()
    app.turn(sid, "error it broke")
    with Forge(base_url=server.url, token=app.token) as forge:
        (found,) = forge.list_sessions(activity="failed")
        assert (found.session_id, found.activity, found.last_outcome) == (sid, Activity.FAILED, "failed")
        assert forge.list_sessions(activity=Activity.RUNNING) == []


def test_an_imported_session_says_how_its_last_turn_ended(app: App) -> None:
    """A short one said nothing; a long one, which is imported in parts, did."""
    sid = app.session()
    app.turn(sid, "error it broke")
    document = app.http.get(f"/sessions/{sid}/export").json()
    body = {"format": "clawdforge", "export": document}
    made = app.http.post("/sessions/import", json=body).json()
    assert doing(app, made["session_id"]) == ("failed", 0, "failed")
