"""Conversations that hermes-webui keeps among its own fixtures, imported here as they are."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.harness import Server
from tests.callers.front_end import NotToBeHad, source_of, unpack

pytestmark = pytest.mark.slow
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
    found = Server(tmp_path_factory.mktemp("forge") / "data")
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
