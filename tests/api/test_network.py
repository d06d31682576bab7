"""Agents with a network of their own on a real server: the listed model is in reach, the server is not."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.harness import AGENT, App, Server
from tests.needs import needs
from tests.support.model.endpoint import Endpoint, running

pytestmark = needs("bwrap")
FETCH = (
    "import sys, urllib.request, urllib.error\n"
    "try: print(urllib.request.urlopen(sys.argv[1], timeout=30).status)\n"
    "except urllib.error.HTTPError as error: print(error.code, error.read().decode())\n"
    "except OSError as error: print('unreachable')\n"
)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    with running(0) as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, endpoint: Endpoint) -> Iterator[Server]:
    root = tmp_path_factory.mktemp("network")
    config = root / "clawdforge.toml"
    place = endpoint.url.removeprefix("http://")
    tables = {
        "proxied": f'network = "proxy"\nhosts = ["{place}"]',
        "closed": 'network = "none"',
        "open": 'network = "open"',
        "bare": 'network = "proxy"\nsandbox = "off"',
    }
    config.write_text(
        "".join(
            f"[agents.{name}]\ncommand = {json.dumps(AGENT)}\n{table}\n" for name, table in tables.items()
        )
    )
    server = Server(root / "data", {}, "--config", str(config), cold=True)
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def app(server: Server) -> App:
    return server.app()


def fetch(app: App, agent: str, url: str) -> str:
    """What a command of the agent's gets; the agent has the server run it."""
    sid = app.session(agent=agent)
    folder = app.http.get(f"/sessions/{sid}").json()["cwd"]
    (Path(folder) / "fetch.py").write_text(FETCH)
    reply = app.turn(sid, f"terminal {sys.executable} -I -S fetch.py {url}")
    assert reply.status_code == 200, reply.text
    return "".join(event["content"] for event in reply.json()["events"] if event["type"] == "text")


def test_a_proxied_agent_reaches_its_model_and_not_the_server(
    server: Server, app: App, endpoint: Endpoint
) -> None:
    assert "200" in fetch(app, "proxied", f"{endpoint.url}/requests")
    assert "proxied may not reach" in fetch(app, "proxied", f"{server.url}/healthz")
    assert "200" in fetch(app, "open", f"{server.url}/healthz")


def test_a_closed_agent_reaches_nothing(server: Server, app: App, endpoint: Endpoint) -> None:
    for url in (f"{endpoint.url}/requests", f"{server.url}/healthz"):
        assert "unreachable" in fetch(app, "closed", url)


def test_an_agent_without_a_sandbox_does_not_start_with_such_a_network(app: App) -> None:
    sid = app.session(agent="bare")
    reply = app.turn(sid, "say hi")
    assert reply.status_code == 502
    assert "network proxy needs bubblewrap" in reply.json()["error"]
