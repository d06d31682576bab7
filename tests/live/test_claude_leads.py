"""Claude Code as a caller of our MCP server, by nothing but its configuration; its model is scripted."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.harness import App, Server
from tests.live.installing import search_path
from tests.live.programs import CLAUDE
from tests.needs import needs
from tests.support.model.endpoint import running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), needs("claude")]
SECONDS = 120


@pytest.fixture
def mine(tmp_path: Path) -> Iterator[App]:
    server = Server(tmp_path / "data", {"CLAWDFORGE_FACES": "mcp"})
    yield server.app()
    server.stop()


def test_claude_code_begins_a_session_and_reads_it(mine: App, tmp_path: Path) -> None:
    where = {"type": "http", "url": str(mine.http.base_url.join("/mcp"))}
    servers = {"forge": {**where, "headers": {"Authorization": f"Bearer {mine.token}"}}}
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": servers}))
    with running() as model:
        env = {
            **os.environ,
            **CLAUDE.env(model.url),
            "HOME": str(tmp_path),
            "PATH": search_path(CLAUDE),
            "IS_SANDBOX": "1",
            "DISABLE_AUTOUPDATER": "1",
            "ENABLE_TOOL_SEARCH": "false",
        }

        def ask(tool: str, **arguments: Any) -> str:
            flags = (
                "--mcp-config",
                str(config),
                "--strict-mcp-config",
                "--allowedTools",
                f"mcp__forge__{tool}",
            )
            prompt = f"mark:one tool:mcp__forge__{tool} {json.dumps(arguments)}"
            before = len(model.requests())
            done = subprocess.run(
                ["claude", "-p", prompt, *flags],
                env=env,
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
                stdin=subprocess.DEVNULL,
            )
            assert done.returncode == 0, (done.stdout, done.stderr)
            return json.dumps(model.requests()[before:])

        ask("start", prompt="echo begun by another agent", agent="claude", title="led")
        (row,) = mine.http.get("/sessions").json()["sessions"]
        assert row["title"] == "led"
        assert "begun by another agent" in ask("wait", session_id=row["session_id"], seconds=30)
    turns = mine.http.get(f"/sessions/{row['session_id']}/turns").json()["turns"]
    assert [turn["outcome"] for turn in turns] == ["completed"]
