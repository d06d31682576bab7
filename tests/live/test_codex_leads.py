"""Codex as a caller of our MCP server, by nothing but its configuration; its model is scripted."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.api.harness import App, Server
from tests.live.installing import search_path
from tests.live.programs import CODEX
from tests.needs import needs
from tests.support.model.endpoint import running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), needs("codex")]
SECONDS: Final = 120
TOKEN: Final = "FORGE_TOKEN"


@pytest.fixture
def mine(tmp_path: Path) -> Iterator[App]:
    server = Server(tmp_path / "data", {"CLAWDFORGE_FACES": "mcp"})
    yield server.app()
    server.stop()


def test_codex_begins_a_session_and_reads_it(mine: App, tmp_path: Path) -> None:
    own = [
        "[mcp_servers.forge]",
        f'url = "{mine.http.base_url.join("/mcp")}"',
        f'bearer_token_env_var = "{TOKEN}"',
        'default_tools_approval_mode = "approve"',
    ]
    with running() as model:
        for name, text in CODEX.files(model.url).items():
            place = tmp_path / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text("\n".join([text, *own, ""]))
        env = {
            **os.environ,
            **CODEX.env(model.url),
            "HOME": str(tmp_path),
            "PATH": search_path(CODEX),
            TOKEN: mine.token,
        }

        def ask(tool: str, **arguments: Any) -> str:
            prompt = f"mark:one tool:mcp__forge.{tool} {json.dumps(arguments)}"
            before = len(model.requests())
            done = subprocess.run(
                ["codex", "exec", "--skip-git-repo-check", prompt],
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
