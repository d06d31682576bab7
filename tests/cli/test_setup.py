"""`clawdforge setup` says what is here and what is needed, installs on request, and tries a turn."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from clawdforge.cli import main
from clawdforge.cli.commands import setup as command
from clawdforge.client.models import AgentInfo
from tests.api.harness import Server

CLAUDE = AgentInfo(
    name="claude", driver="acp", installed=False, install="npm install -g x", keys=["A_KEY", "B_TOKEN"]
)


def run(server: Server, *args: str, code: int = 0, stdin: str = "", **env: str) -> str:
    result = CliRunner(env={"CLAWDFORGE_DATA_DIR": str(server.data_dir), **env}).invoke(
        main, ["setup", *args], input=stdin
    )
    assert result.exit_code == code, result.output
    return result.output


def test_an_agent_is_tried_and_the_next_command_is_told(server: Server) -> None:
    said = run(server, "demo")
    assert "nothing needed" in said
    assert "Hello!" in said.partition("Trying demo")[2]
    assert said.endswith("Now type:  clawdforge\n")
    assert run(server, "claude", "--no-try").endswith("Now type:  clawdforge -a claude\n")
    assert "there is no agent 'nobody'" in run(server, "nobody", code=1)


def test_no_other_server_says_what_is_run_here(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("it was run"))
    token = (server.data_dir / "local.token").read_text().strip()
    env = {"CLAWDFORGE_URL": server.url, "CLAWDFORGE_TOKEN": token}
    assert f"on the machine of {server.url}" in run(server, "missing", "--install", code=1, **env)


def test_what_is_asked_for_is_installed_and_a_failure_is_told(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = tmp_path / "made"
    program = f"import pathlib, sys; pathlib.Path({str(made)!r}).touch(); sys.exit(3)"
    wanted = CLAUDE.model_copy(update={"install": f'{sys.executable} -c "{program}"'})
    monkeypatch.setattr(command, "_choose", lambda *_: wanted)
    assert "nothing was installed" in run(server, "claude", code=1, stdin="n\n")
    run(server, "claude", code=130)  # nobody is there to say yes
    assert not made.exists()
    assert "ended with 3" in run(server, "claude", "--install", code=1)
    assert made.exists()


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({}, "its own login, or export A_KEY=…"),
        ({"B_TOKEN": "x"}, "B_TOKEN is set"),
        ({"A_KEY": ""}, "export A_KEY"),
    ],
)
def test_how_an_agent_is_signed_in(env: dict[str, str], words: str) -> None:
    program, signs_in = command.describe(CLAUDE, env)
    assert (program, words in signs_in) == ("npm install -g x", True)


@pytest.mark.parametrize(
    ("node", "words"),
    [(None, "not installed; see"), ((20, 19), "and this is 20.19"), ((22, 12), "22.12")],
)
def test_an_old_node_is_told_before_npm_takes_an_old_agent(node: tuple[int, int] | None, words: str) -> None:
    assert words in (command.find_obstacle(["npm", "install"], node) or "")


def test_a_node_that_will_do_is_in_nobodys_way() -> None:
    assert command.find_obstacle([sys.executable], None) is None
    for node in ((22, 13), (24, 0)):
        assert "Node" not in (command.find_obstacle(["npm", "install"], node) or "")
    assert command.find_obstacle(["no-such-program"], None) == "no-such-program is not installed"
