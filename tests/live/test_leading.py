"""Claude Code and Codex call our MCP server, told of it by configuration only; the model is scripted."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.api.harness import App, Server
from tests.live.installing import search_path
from tests.live.programs import CLAUDE, CODEX, Program
from tests.needs import needs
from tests.support.model.endpoint import running

pytestmark = pytest.mark.slow
SECONDS: Final = 120
TOKEN: Final = "FORGE_TOKEN"


class Caller(NamedTuple):
    """A program, how it is told of our server, and how it is asked for one of our tools."""

    program: Program
    prepare: Callable[[App, Path, str], dict[str, str]]  # returns its variables
    tool: str
    command: Callable[[Path, str, str], list[str]]


def prepare_claude(mine: App, home: Path, _model: str) -> dict[str, str]:
    where = {"type": "http", "url": str(mine.http.base_url.join("/mcp"))}
    servers = {"forge": {**where, "headers": {"Authorization": f"Bearer {mine.token}"}}}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    return {"IS_SANDBOX": "1", "DISABLE_AUTOUPDATER": "1", "ENABLE_TOOL_SEARCH": "false"}


def command_claude(home: Path, tool: str, prompt: str) -> list[str]:
    flags = ("--mcp-config", str(home / "mcp.json"), "--strict-mcp-config", "--allowedTools", tool)
    return ["claude", "-p", prompt, *flags]


def prepare_codex(mine: App, home: Path, model: str) -> dict[str, str]:
    own = [
        "[mcp_servers.forge]",
        f'url = "{mine.http.base_url.join("/mcp")}"',
        f'bearer_token_env_var = "{TOKEN}"',
        'default_tools_approval_mode = "approve"',
    ]
    for name, text in CODEX.files(model).items():
        place = home / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("\n".join([text, *own, ""]))
    return {TOKEN: mine.token}


def command_codex(_home: Path, _tool: str, prompt: str) -> list[str]:
    return ["codex", "exec", "--skip-git-repo-check", prompt]


CALLERS: Final = (
    pytest.param(Caller(CLAUDE, prepare_claude, "mcp__forge__{}", command_claude), marks=needs("claude")),
    pytest.param(Caller(CODEX, prepare_codex, "mcp__forge.{}", command_codex), marks=needs("codex")),
)


@pytest.fixture
def mine(tmp_path: Path) -> Iterator[App]:
    server = Server(tmp_path / "data", {"CLAWDFORGE_FACES": "mcp"})
    yield server.app()
    server.stop()


@pytest.mark.parametrize("caller", CALLERS, ids=lambda caller: caller.program.name)
def test_it_begins_a_session_and_reads_it(caller: Caller, mine: App, tmp_path: Path) -> None:
    program = caller.program
    with running() as model:
        own = caller.prepare(mine, tmp_path, model.url)
        place = {"HOME": str(tmp_path), "PATH": search_path(program)}
        env = {**os.environ, **program.env(model.url), **place, **own}

        def ask(name: str, **arguments: Any) -> str:
            tool = caller.tool.format(name)
            before = len(model.requests())
            done = subprocess.run(
                caller.command(tmp_path, tool, f"mark:one tool:{tool} {json.dumps(arguments)}"),
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
