"""An agent driven through acpx in a real server: turns, memory, permissions, and nothing left running."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from clawdforge import scripted
from tests.api.harness import App, Server, until
from tests.api.talk import do, say
from tests.needs import ACPX, needs

pytestmark = [needs("acpx"), pytest.mark.slow]


@pytest.fixture(scope="module")
def forge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root = tmp_path_factory.mktemp("acpx")
    command = json.dumps(scripted.command())
    (root / "clawdforge.toml").write_text(f'[agents.claude]\ndriver = "acpx"\ncommand = {command}\n')
    env = {"PATH": f"{ACPX}:{os.environ['PATH']}", "CLAWDFORGE_CANCEL_GRACE_SECS": "15"}
    server = Server(
        root / "data", {**env, "CLAWDFORGE_AGENT_CLAUDE": ""}, "--config", str(root / "clawdforge.toml")
    )
    yield server
    server.stop()


@pytest.fixture
def app(forge: Server) -> App:
    return forge.app()


def processes(server: Server, session_id: str) -> list[int]:
    home = f"HOME={server.data_dir / 'homes' / session_id}\0".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            found += [int(path.parent.name)] if home in path.read_bytes() else []
        except OSError:
            continue
    return found


def test_healthz_tells_the_version_of_acpx(forge: Server) -> None:
    http = forge.admin()
    assert http.get("/healthz").json()["acpx_present"] is True
    version = until(lambda: http.get("/healthz").json()["acpx_version"], "the version")
    assert version[0].isdigit()


def test_a_turn_has_the_agents_two_messages_and_the_record_stays_after_the_close(
    forge: Server, app: App
) -> None:
    """S0-24, S0-32, S0-62: acpx knows the session by the id that we gave it."""
    sid = app.session()
    turn = app.turn(sid, "echo hello").json()
    assert [event["type"] for event in turn["events"]] == ["text", "response"]
    assert turn["usage"]["input_tokens"] > 0
    assert app.http.delete(f"/sessions/{sid}").status_code == 200
    assert processes(forge, sid) == []
    [record] = (forge.data_dir / "homes" / sid / ".acpx" / "sessions").glob("*.json")
    kept = json.loads(record.read_text())
    assert (kept["name"], kept["closed"]) == (sid, True)


def test_a_session_that_denies_all_is_denied_by_acpx(app: App) -> None:
    sid = app.session(permission_mode="deny_all")
    assert "permission: allow" not in say(app, sid, "ask to go")


def test_a_cancel_ends_the_turn_and_the_session_goes_on(app: App) -> None:
    sid = app.session()
    app.http.post(f"/sessions/{sid}/turns", json={"prompt": "echo half\nsleep 60"})

    def half() -> bool:
        events = app.http.get(f"/sessions/{sid}/events", params={"limit": 1000}).json()["events"]
        return any(event.get("content") == "half" for event in events)

    until(half, "half an answer")
    assert app.http.post(f"/sessions/{sid}/cancel").status_code == 200
    assert json.loads(say(app, sid, "recall")) == ["echo half\nsleep 60"]


def test_undo_and_a_killed_server_leave_the_right_memory(forge: Server, app: App) -> None:
    sid = app.session()
    say(app, sid, "echo one")
    say(app, sid, "echo two")
    do(app, sid, "undo")
    assert json.loads(say(app, sid, "recall")) == ["echo one"]
    forge.stop(signal.SIGKILL)
    until(lambda: not processes(forge, sid), "the end of all its processes")
    forge.start()
    again = App(app.name, app.token, app.token_id, forge.client(app.token))
    assert json.loads(say(again, sid, "recall")) == ["echo one", "recall"]


def test_a_server_killed_in_a_turn_leaves_no_lock_that_the_next_one_waits_for(
    forge: Server, app: App
) -> None:
    sid = app.session()
    say(app, sid, "echo one")
    app.http.post(f"/sessions/{sid}/turns", json={"prompt": "echo half\nsleep 60"})

    def half() -> bool:
        events = app.http.get(f"/sessions/{sid}/events", params={"limit": 1000}).json()["events"]
        return any(event.get("content") == "half" for event in events)

    until(half, "half an answer")
    sessions = forge.data_dir / "homes" / sid / ".acpx" / "sessions"
    forge.stop(signal.SIGKILL)
    until(lambda: not processes(forge, sid), "the end of all its processes")
    assert list(sessions.glob("*.lock")), "acpx held no lock, so this shows nothing"
    forge.start()
    again = App(app.name, app.token, app.token_id, forge.client(app.token))
    assert json.loads(say(again, sid, "recall"))[0] == "echo one"


def test_kinds_of_failures_are_told_apart_as_over_acp(app: App) -> None:
    sid = app.session()
    kinds = {
        "credit balance is too low": "model_no_credit",
        "prompt is too long: 250000 tokens": "context_too_long",
        "API Error: 429 rate_limit_error; try again in 2 hours": "model_rate_limited",
        "boo": "agent_failed",
    }
    for words, code in kinds.items():
        failed = app.turn(sid, f"error {words}").json()
        assert (failed["code"], words in failed["error"]) == (code, True)
    assert say(app, sid, "echo still here") == "still here"
