"""MCP servers: what an agent is told of them, from whom they come, and that nobody else sees a secret."""

import json
import signal
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.api.harness import AGENT, App, Server
from tests.api.talk import do, say, state

SECRET = "s3cr3t-of-the-tests"
VARIABLE = "v4r14ble-of-the-tests"
CONFIG = f"""
[agents.plain]
command = {json.dumps(AGENT + " --no-mcp-http")}
[agents.keeper]
command = {json.dumps(AGENT)}
callback = true
[mcp_servers.everywhere]
command = ["mcp-tool", "--flag"]
env = {{ KEY = "x-${{OPERATORS_KEY}}" }}
[mcp_servers.some]
url = "https://tools.example/mcp"
apps = ["chosen"]
"""
EVERYWHERE = {
    "name": "everywhere",
    "command": "mcp-tool",
    "args": ["--flag"],
    "env": [{"name": "KEY", "value": f"x-{VARIABLE}"}],
}
SOME = {"type": "http", "name": "some", "url": "https://tools.example/mcp", "headers": []}
OWN = {"own": {"url": "http://127.0.0.1:1/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}}
OWN_TOLD = {
    "type": "http",
    "name": "own",
    "url": "http://127.0.0.1:1/mcp",
    "headers": [{"name": "Authorization", "value": f"Bearer {SECRET}"}],
}


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root = tmp_path_factory.mktemp("mcp")
    (root / "config.toml").write_text(CONFIG)
    env = {"OPERATORS_KEY": VARIABLE, "CLAWDFORGE_LOG_LEVEL": "debug"}
    found = Server(root / "data", env, "--config", str(root / "config.toml"))
    yield found
    found.stop()


def give(server: Server, app: App, **body: Any) -> dict[str, Any]:
    reply = server.admin().post("/admin/apps", json={"app_name": app.name, **body})
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()["app"]
    return found


def told(app: App, session_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(say(app, session_id, "mcp"))
    return found


def started(app: App, session_id: str) -> list[list[str] | None]:
    """The names in each `context.started`."""
    events = app.http.get(f"/sessions/{session_id}/events", params={"limit": 1000}).json()["events"]
    return [event.get("mcp_servers") for event in events if event["type"] == "context.started"]


def test_the_operators_servers_are_told_to_the_apps_that_they_are_for(serving: Server) -> None:
    app, chosen = serving.app(), serving.app("chosen")
    assert told(app, app.session()) == [EVERYWHERE]
    session_id = chosen.session()
    assert told(chosen, session_id) == [EVERYWHERE, SOME]
    assert started(chosen, session_id) == [["everywhere", "some"]]


def test_servers_of_an_app_and_a_session_survive_a_kill_a_fork_and_an_undo(serving: Server) -> None:
    app, other = serving.app(), serving.app()
    shown = give(
        serving,
        app,
        mcp_servers={"everywhere": {"command": ["theirs"], "env": {"KEY": "${TOKEN}"}}},
        secrets={"TOKEN": SECRET, "SPARE": "x"},
    )
    assert (shown["mcp_servers"], shown["secrets"]) == (["everywhere"], ["SPARE", "TOKEN"])
    theirs = {**EVERYWHERE, "command": "theirs", "args": [], "env": [{"name": "KEY", "value": SECRET}]}
    session_id = app.session(mcp_servers=OWN)
    assert state(app, session_id)["mcp_servers"] == ["own"]
    assert told(app, session_id) == [theirs, OWN_TOLD]
    serving.stop(signal.SIGKILL)
    serving.start()
    app, other = (replace(one, http=serving.client(one.token)) for one in (app, other))
    assert told(app, session_id) == [theirs, OWN_TOLD]
    do(app, session_id, "undo")
    assert told(app, session_id) == [theirs, OWN_TOLD]
    fork = do(app, session_id, "fork")["session_id"]
    assert told(app, fork) == [theirs, OWN_TOLD]
    assert told(other, other.session()) == [EVERYWHERE]
    assert give(serving, app, limits={})["mcp_servers"] == ["everywhere"]
    assert give(serving, app, mcp_servers={}, secrets={"SPARE": ""})["secrets"] == ["TOKEN"]
    assert told(app, app.session()) == [EVERYWHERE]


def test_a_secret_is_seen_by_the_agent_alone(serving: Server) -> None:
    """Not in replies, events, exports, the audit or the log; a session's own words for it neither."""
    app = serving.app()
    give(serving, app, secrets={"TOKEN": SECRET})
    literal = {"mine": {"command": ["tool"], "env": {"KEY": "l1t3r4l-of-the-tests"}}}
    session_id = app.session(mcp_servers={**OWN, **literal})
    assert say(app, session_id, "echo done") == "done"
    app.http.patch(f"/sessions/{session_id}", json={"title": "changed"})
    pages = [
        *(
            app.http.get(f"/sessions/{session_id}{rest}").text
            for rest in ("", "/events", "/turns", "/export")
        ),
        app.http.get(f"/sessions/{session_id}/export", params={"format": "md"}).text,
        *(app.http.get(path).text for path in ("/sessions", "/events", "/agents")),
        *(serving.admin().get(path).text for path in ("/admin/apps", "/admin/audit", "/metrics")),
        serving.log_text,
    ]
    for word in (SECRET, VARIABLE, "l1t3r4l-of-the-tests"):
        assert not [page for page in pages if word in page]
    assert "tools_given" in pages[-3]


def test_an_agent_without_http_is_told_of_the_others(serving: Server) -> None:
    app = serving.app()
    session_id = app.session(agent="plain", mcp_servers={"far": {"url": "https://tools.example/mcp"}})
    assert told(app, session_id) == [EVERYWHERE]
    assert started(app, session_id) == [["everywhere"]]
    assert "it cannot use MCP servers over HTTP: far" in serving.log_text


def test_a_secret_that_is_not_there_is_named(serving: Server) -> None:
    """When a session is made, and when its agent starts after it was removed."""
    app, other = serving.app(), serving.app()
    give(serving, other, secrets={"TOKEN": SECRET})
    refused = app.http.post("/sessions", json={"mcp_servers": OWN})
    assert refused.status_code == 422
    assert "needs the secret TOKEN" in refused.json()["error"]
    give(serving, app, secrets={"TOKEN": "two\nlines"})
    session_id = app.session(mcp_servers=OWN)
    assert "no header can have" in app.turn(session_id, "echo hello").text
    give(serving, app, secrets={"TOKEN": ""})
    assert "the MCP server own needs TOKEN" in app.turn(session_id, "echo hello").text
    give(serving, app, secrets={"TOKEN": SECRET})
    assert OWN_TOLD in told(app, session_id)


def test_who_may_not_decide_may_not_name_servers(serving: Server) -> None:
    """A server runs without a question; neither a token without the scope nor an agent names one."""
    app = serving.app(scopes=["read", "prompt"])
    refused = app.http.post("/sessions", json={"mcp_servers": {"mine": {"command": ["tool"]}}})
    assert refused.status_code == 403
    owner = serving.app()
    token = say(owner, owner.session(agent="keeper"), "env CLAWDFORGE_TOKEN")
    with serving.client(token) as agent:
        body = {"mcp_servers": {"mine": {"command": ["tool"]}}}
        assert agent.post("/sessions", json=body).status_code == 403
        assert agent.post("/sessions", json={}).status_code == 200


def test_more_secrets_than_an_app_may_have_are_refused_as_a_whole(serving: Server) -> None:
    app = serving.app()
    give(serving, app, secrets={f"S{number}": "x" for number in range(63)})
    assert len(give(serving, app, secrets={"S63": "x"})["secrets"]) == 64
    body = {"app_name": app.name, "secrets": {"S64": "x", "S0": "changed"}}
    assert serving.admin().post("/admin/apps", json=body).status_code == 422
    assert len(give(serving, app)["secrets"]) == 64
