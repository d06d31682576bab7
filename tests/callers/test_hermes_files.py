"""Conversations that hermes-webui keeps among its own fixtures, imported here as they are."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.harness import Server
from tests.api.talk import knows
from tests.callers.front_end import NotToBeHad, source_of, unpack

pytestmark = pytest.mark.slow
MOVING = Path(__file__).parents[2] / "docs" / "reference" / "dialects.md"
SAID = ("messages", "rows")
"""Where its fixtures keep what was said."""


@pytest.fixture(scope="module")
def fixtures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return unpack("August", source_of(), tmp_path_factory.mktemp("fixtures"), "tests/fixtures")
    except NotToBeHad as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, fixtures: Path) -> Iterator[Server]:
    assert fixtures.is_dir()
    settings = {"CLAWDFORGE_DEFAULT_AGENT": "claude"}
    found = Server(tmp_path_factory.mktemp("forge") / "data", settings)
    yield found
    found.stop()


def conversations(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.rglob("*.json")):
        kept = json.loads(path.read_text())
        name = next((name for name in SAID if name in kept), None)
        if name is not None:
            yield {**kept, "messages": kept[name]}


def test_what_was_said_there_is_said_here(server: Server, fixtures: Path) -> None:
    app = server.app()
    walked = 0
    for kept in conversations(fixtures):
        reply = app.http.post("/api/session/import", json=kept)
        assert reply.status_code == 200, (kept, reply.text)
        rows = reply.json()["session"]["messages"]
        assert [(row["role"], row["content"]) for row in rows] == [
            (row["role"], row["content"]) for row in kept["messages"]
        ]
        walked += 1
    assert walked >= 2


@pytest.mark.skipif(shutil.which("curl") is None, reason="the documented way needs curl")
def test_the_documented_way_brings_everything_and_the_agent_is_told(
    server: Server, fixtures: Path, tmp_path: Path
) -> None:
    """The commands are taken from the page itself, and run on a state folder like that of hermes-webui."""
    app = server.app()
    folder = tmp_path / ".hermes" / "webui" / "sessions"
    folder.mkdir(parents=True)
    kept = list(conversations(fixtures))
    for number, one in enumerate(kept):
        (folder / f"{number}.json").write_text(json.dumps(one))
    (folder / "_index.json").write_text("[]")
    commands = re.search(r"```sh\n(for file in ~/\.hermes.*?)```", MOVING.read_text(), re.DOTALL)
    assert commands is not None
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "TOKEN": app.token, "URL": server.url}
    done = subprocess.run(
        ["sh", "-c", commands[1]], env=env, capture_output=True, text=True, timeout=60, check=True
    )
    assert len(done.stdout.splitlines()) == len(kept), done.stderr
    brought = app.http.get("/sessions").json()["sessions"]
    assert len(brought) == len(kept)
    for session in brought:
        rows = app.http.get(f"/sessions/{session['session_id']}/messages").json()["messages"]
        words = next(row["content"] for row in rows if row["content"])
        assert json.dumps(words)[1:60].rstrip('"') in knows(app, session["session_id"])
