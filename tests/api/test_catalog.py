"""Agents and personas over HTTP."""

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from clawdforge import Forge
from tests.api.harness import App, Server, until

BUILTIN = "default-interactive"


def test_the_agents_that_can_be_run_are_listed(app: App) -> None:
    body = app.http.get("/agents").json()
    agents = {agent["name"]: agent for agent in body["agents"]}
    assert body["ok"] is True
    assert body["default"] == "claude"
    assert agents["claude"]["installed"] is True
    assert agents["demo"]["installed"] is True
    assert agents["missing"]["installed"] is False
    assert agents["codex"]["install"].startswith("npm install")
    assert agents["codex"]["keys"] == ["OPENAI_API_KEY", "CODEX_API_KEY"]
    known = {"name", "title", "driver", "installed", "version", "install", "keys", "sandbox", "paused"}
    assert set(agents["demo"]) == known
    assert agents["demo"]["sandbox"] in ("bwrap", "bwrap-full", "landlock", "tree")


def test_versions_are_asked_for_once_in_the_background(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = tmp_path / "asked"
    for name, answer in (
        ("gemini", "echo gemini-cli 1.2.3-beta"),
        ("goose", "sleep 60"),
        ("opencode", "exit 1"),
    ):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho {name} "$@" >> {asked}\n{answer}\n')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/local/bin:/usr/bin:/bin")
    # The programs count their runs in a file that no agent sees in a sandbox.
    server = Server(tmp_path / "data", {"CLAWDFORGE_SANDBOX": "off"})
    try:
        app = server.app()

        def gemini() -> str | None:
            agents = app.http.get("/agents").json()["agents"]
            found = {agent["name"]: agent["version"] for agent in agents}
            assert found["claude"] is None  # the operator's own command is never run for that
            version = found["gemini"]
            return str(version) if version else None

        assert until(gemini, "the version") == "1.2.3-beta"
        for _ in range(5):
            assert app.http.get("/agents").status_code == 200
        assert asked.read_text().count("gemini --version") == 1
    finally:
        assert server.stop() == 0


def test_the_built_in_persona_is_there_and_stays(app: App) -> None:
    """X-17."""
    body = app.http.get("/personas").json()
    assert (body["ok"], body["count"]) == (True, 1)
    assert body["personas"][0] == {
        "name": BUILTIN,
        "agent": "claude",
        "model": None,
        "permission_mode": None,
        "instructions": None,
        "plan_mode": False,
        "builtin": True,
    }
    assert app.http.get(f"/personas/{BUILTIN}").json()["persona"] == body["personas"][0]
    for reply in (
        app.http.delete(f"/personas/{BUILTIN}"),
        app.http.put(f"/personas/{BUILTIN}", json={"agent": "demo"}),
    ):
        assert (reply.status_code, reply.json()["code"]) == (409, "conflict")
    session = app.http.post("/sessions", json={"persona": BUILTIN}).json()
    assert session["agent"] == "claude"


def test_it_is_the_demo_where_there_is_no_claude(start: Callable[..., Server]) -> None:
    server = start(AGENT_CLAUDE="")
    app = server.app()
    if app.http.get("/agents").json()["agents"][1]["installed"]:
        pytest.skip("claude-agent-acp is installed here")
    assert app.http.get(f"/personas/{BUILTIN}").json()["persona"]["agent"] == "demo"
    assert app.http.post("/sessions", json={"persona": BUILTIN}).json()["agent"] == "demo"


def test_a_persona_is_made_replaced_and_deleted(app: App, other: App) -> None:
    wanted = {
        "agent": "demo",
        "model": "openai/gpt-5.4-mini",
        "permission_mode": "ask",
        "instructions": "Be brief.",
    }
    made = app.http.put("/personas/reviewer", json=wanted)
    assert made.status_code == 200
    persona = made.json()["persona"]
    assert {key: persona[key] for key in wanted} == wanted
    assert persona["builtin"] is False
    assert app.http.get("/personas/reviewer").json()["persona"] == persona
    assert [row["name"] for row in app.http.get("/personas").json()["personas"]] == [BUILTIN, "reviewer"]
    assert other.http.get("/personas").json()["count"] == 1
    replaced = app.http.put("/personas/reviewer", json={"agent": "claude"}).json()["persona"]
    assert (replaced["agent"], replaced["model"], replaced["instructions"]) == ("claude", None, None)
    for method in ("GET", "DELETE"):
        foreign = other.http.request(method, "/personas/reviewer")
        unknown = other.http.request(method, "/personas/nobody")
        assert (foreign.status_code, foreign.content) == (404, unknown.content)
    assert app.http.delete("/personas/reviewer").json() == {"ok": True}
    assert app.http.delete("/personas/reviewer").json()["code"] == "persona_not_found"


def test_a_session_takes_what_its_persona_says(app: App) -> None:
    app.http.put(
        "/personas/mine",
        json={"agent": "claude", "model": "m1", "permission_mode": "ask", "instructions": "Speak of rain."},
    )
    session = app.http.post("/sessions", json={"persona": "mine"}).json()
    assert (session["agent"], session["model"], session["permission_mode"]) == ("claude", "m1", "ask")
    session_id = session["session_id"]
    app.http.delete("/personas/mine")  # the session stays as it is
    app.turn(session_id, "echo hi")
    heard = app.turn(session_id, "recall all").json()["events"][0]["content"]
    assert "Speak of rain." in heard
    own = {"persona": "mine", "model": "m2", "permission_mode": "approve_all"}
    missing = app.http.post("/sessions", json=own)
    assert (missing.status_code, missing.json()["code"]) == (404, "persona_not_found")
    app.http.put("/personas/mine", json={"agent": "demo", "model": "m1", "permission_mode": "ask"})
    session = app.http.post("/sessions", json=own).json()
    assert (session["model"], session["permission_mode"]) == ("m2", "approve_all")


@pytest.mark.parametrize("body", [{}, {"agent": ""}, {"agent": "demo", "permission_mode": "maybe"}])
def test_a_persona_that_is_not_right_is_refused(app: App, body: dict[str, str]) -> None:
    assert app.http.put("/personas/x", json=body).status_code == 422


def test_a_persona_needs_an_agent_and_a_name(app: App) -> None:
    unknown = app.http.put("/personas/x", json={"agent": "nobody"})
    assert (unknown.status_code, unknown.json()["code"]) == (400, "unknown_agent")
    for name in ("x" * 129, "a%0Ab", "%00"):
        assert app.http.put(f"/personas/{name}", json={"agent": "demo"}).status_code == 422, name
    assert app.http.get("/personas").json()["count"] == 1


def test_the_sdk_knows_them(server: Server, app: App) -> None:
    with Forge(base_url=server.url, token=app.token) as forge:
        assert {agent.name for agent in forge.agents()} >= {"claude", "demo"}
        assert forge.put_persona("p", agent="demo", instructions="x").instructions == "x"
        assert [persona.name for persona in forge.personas()] == [BUILTIN, "p"]
        assert forge.get_persona("p").agent == "demo"
        forge.delete_persona("p")
        assert len(forge.personas()) == 1
