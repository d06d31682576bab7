"""An agent that calls the server back: with a token of its own, which opens its session and what it made."""

import base64
import json
import shlex
import sys
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from clawdforge.core.callbacks import BY_AGENT, CallbackTokens
from clawdforge.core.services.sub_sessions import MOST_OPEN
from clawdforge.http.access.binding import ACTS, MAKES, READS
from clawdforge.http.scopes import SCOPES
from clawdforge.wire.scopes import Scope
from tests.api.harness import AGENT, App, Server
from tests.api.test_tenancy import UNKNOWN, operations

CONFIG = f"""
[agents.caller]
command = {json.dumps(AGENT)}
callback = true
[agents.other]
command = {json.dumps(AGENT)}
sandbox = "off"
"""


@pytest.fixture(scope="module")
def calling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root = tmp_path_factory.mktemp("calling")
    (root / "config.toml").write_text(CONFIG)
    found = Server(root / "data", {}, "--config", str(root / "config.toml"))
    yield found
    found.stop()


@pytest.fixture
def owner(calling: Server) -> App:
    return calling.app()


def say(app: App, session_id: str, prompt: str) -> str:
    reply = app.turn(session_id, prompt)
    assert reply.status_code == 200, reply.text
    return "".join(event["content"] for event in reply.json()["events"] if event.get("type") == "text")


def token_of(app: App, session_id: str) -> str:
    return say(app, session_id, "env CLAWDFORGE_TOKEN")


def agent_of(server: Server, app: App, **body: Any) -> tuple[str, httpx2.Client]:
    """A session, and a client with the token of its agent."""
    session_id = app.session(agent="caller", **body)
    return session_id, server.client(token_of(app, session_id))


def test_only_an_agent_that_is_meant_to_call_back_gets_a_token(calling: Server, owner: App) -> None:
    plain = owner.session(agent="other")
    assert token_of(owner, plain) == ""
    session_id = owner.session(agent="caller")
    assert say(owner, session_id, "env CLAWDFORGE_URL") == calling.url
    token = token_of(owner, session_id)
    assert token.startswith("cfs_")
    assert token != owner.token
    names = json.loads(say(owner, session_id, "env"))
    assert [name for name in names if name.startswith("CLAWDFORGE_")] == [
        "CLAWDFORGE_TAG",
        "CLAWDFORGE_TOKEN",
        "CLAWDFORGE_URL",
    ]


def test_an_agent_makes_and_prompts_a_session_from_inside(owner: App) -> None:
    source = """
import http.client, json, os, urllib.parse
address = urllib.parse.urlsplit(os.environ["CLAWDFORGE_URL"])
def call(path, body):
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=30)
    bearer = "Bearer " + os.environ["CLAWDFORGE_TOKEN"]
    headers = {"Authorization": bearer, "Content-Type": "application/json"}
    connection.request("POST", path, json.dumps(body), headers)
    return json.loads(connection.getresponse().read())
made = call("/sessions", {"title": "helper"})
print(call("/sessions/" + made["session_id"] + "/turn", {"prompt": "echo from below"})["stop_reason"])
"""
    packed = base64.b64encode(source.encode()).decode()
    argv = [sys.executable, "-c", f"import base64; exec(base64.b64decode('{packed}'))"]
    session_id = owner.session(agent="caller")
    assert "end_turn" in say(owner, session_id, f"terminal {shlex.join(argv)}")
    rows = owner.http.get("/sessions").json()["sessions"]
    (made,) = [row for row in rows if row["parent_session_id"] == session_id]
    assert (made["title"], made["agent"], made["labels"]) == ("helper", "caller", [BY_AGENT])


def test_it_reads_its_session_and_acts_on_those_that_it_made(calling: Server, owner: App) -> None:
    mine, agent = agent_of(calling, owner)
    made = agent.post("/sessions", json={"labels": ["x"]}).json()["session_id"]
    assert agent.get(f"/sessions/{mine}").status_code == 200
    assert agent.get(f"/sessions/{mine}/messages").status_code == 200
    assert agent.post(f"/sessions/{mine}/turns", json={"prompt": "echo me"}).status_code == 403
    assert agent.delete(f"/sessions/{mine}").status_code == 403
    assert agent.post(f"/sessions/{made}/turn", json={"prompt": "echo x"}).status_code == 200
    assert agent.get(f"/sessions/{made}/events").json()["events"]
    assert agent.delete(f"/sessions/{made}").status_code == 200


def test_every_other_session_of_its_app_is_unknown_to_it(calling: Server, owner: App) -> None:
    """Also one that somebody else made below its own, and a fork of one that it made."""
    mine, agent = agent_of(calling, owner)
    made = agent.post("/sessions", json={}).json()["session_id"]
    owner.turn(made, "echo x")
    below = owner.session(agent="caller", parent_session_id=mine)
    fork = owner.http.post(f"/sessions/{made}/fork", json={}).json()["session_id"]
    elsewhere = calling.app().session()
    paths = [route.split(" ", 1) for route in sorted(READS | ACTS)]
    for method, path in paths:
        replies = []
        for session_id in (UNKNOWN["unknown"], owner.session(), below, fork, elsewhere):
            filled = path.replace("{session_id}", session_id).replace("{turn_index}", "1")
            body = {"prompt": "echo x"} if method == "POST" else None
            replies.append(agent.request(method, filled, json=body))
        assert {(reply.status_code, reply.content) for reply in replies} == {(404, replies[0].content)}, path


def test_health_tells_it_what_it_tells_everybody(calling: Server, owner: App) -> None:
    _, agent = agent_of(calling, owner)
    assert "checks" in owner.http.get("/health?deep=1").json()
    assert agent.get("/health?deep=1").json().keys() == calling.client().get("/health").json().keys()


def test_every_other_route_is_closed_to_it(calling: Server, owner: App) -> None:
    mine, agent = agent_of(calling, owner)
    open_routes = READS | ACTS | MAKES
    assert open_routes <= set(SCOPES)
    walked = 0
    for operation in operations(calling.client().get("/openapi.json").json()):
        if operation.secured and f"{operation.method} {operation.path}" not in open_routes:
            walked += 1
            refusal = 404 if operation.is_for_links else 403
            assert operation.call(agent, mine).status_code == refusal, operation
    assert walked > 40
    assert {SCOPES[route] for route in open_routes} == {Scope.READ, Scope.PROMPT}


@pytest.mark.parametrize(
    "wish",
    [
        {"agent": "other"},
        {"permission_mode": "approve_all"},
        {"cwd": "/"},
        {"persona": "default-interactive"},
        {"parent_session_id": UNKNOWN["unknown"]},
    ],
)
def test_what_it_makes_can_do_no_more_than_itself(calling: Server, owner: App, wish: dict[str, str]) -> None:
    _, agent = agent_of(calling, owner, permission_mode="ask")
    reply = agent.post("/sessions", json=wish)
    assert (reply.status_code, reply.json()["code"]) == (403, "forbidden")
    assert next(iter(wish)) in reply.json()["error"]
    made = agent.post("/sessions", json={"retention": "keep"}).json()
    assert (made["permission_mode"], made["agent"], made["retention"]) == ("ask", "caller", "ttl")


def test_it_may_have_a_few_open_sessions_at_once(calling: Server, owner: App) -> None:
    _, agent = agent_of(calling, owner)
    made = [agent.post("/sessions", json={}) for _ in range(MOST_OPEN)]
    assert {reply.status_code for reply in made} == {200}
    assert agent.post("/sessions", json={}).status_code == 429
    agent.delete(f"/sessions/{made[0].json()['session_id']}")
    assert agent.post("/sessions", json={}).status_code == 200


def test_its_token_ends_with_the_session_and_logs_nobody_in(calling: Server, owner: App) -> None:
    mine, agent = agent_of(calling, owner)
    token = agent.headers["authorization"].partition(" ")[2]
    assert calling.client().post("/login", json={"token": token}).status_code == 401
    owner.http.delete(f"/sessions/{mine}")
    assert agent.get(f"/sessions/{mine}").status_code == 401


def test_nobody_else_can_make_one(calling: Server, owner: App) -> None:
    mine, agent = agent_of(calling, owner)
    other = owner.session()
    token = agent.headers["authorization"].partition(" ")[2]
    forged = [
        token[:-1] + ("0" if token[-1] != "0" else "1"),
        token.replace(mine, other),
        CallbackTokens("").make(owner.name, mine),
        f"cfs_{mine}.{owner.name}.",
        "cfs_",
        "cfs_..",
    ]
    for one in forged:
        assert calling.client(one).get(f"/sessions/{mine}").status_code == 401, one
    assert CallbackTokens("").read("cfs_\udcff.\udcff") is None
    assert agent.get(f"/sessions/{mine}").status_code == 200
