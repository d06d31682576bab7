"""acpx, a public command line for agents that speak ACP, as a client of `clawdforge acp`.

Left out where it is not installed: `python3 -m tests.live.installing acpx` does that.
"""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from clawdforge.wire.local import TOKEN_FILE
from tests.api.harness import App, Server
from tests.cli.kit import environment
from tests.live.installing import folder, node_folder, present
from tests.live.programs import ACPX

SECONDS = 120
AGENT = shlex.join([sys.executable, "-m", "clawdforge", "acp"])

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not present(ACPX), reason="acpx is not installed")]


@dataclass
class Acpx:
    """A person at the command line of acpx, in a folder of theirs."""

    env: dict[str, str]
    project: Path

    def run(self, *arguments: str) -> str:
        command = ["acpx", "--agent", AGENT, "--cwd", str(self.project), *arguments]
        done = subprocess.run(
            command, env=self.env, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done.stdout.strip()

    def say(self, text: str, *flags: str) -> str:
        """The answer alone."""
        return self.run("--format", "quiet", *flags, "prompt", text)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    found = Server(tmp_path / "data")
    yield found
    found.stop()


@pytest.fixture
def acpx(server: Server, tmp_path: Path) -> Iterator[Acpx]:
    project = tmp_path / "project"
    project.mkdir()
    path = os.pathsep.join([str(folder(ACPX)), str(node_folder()), os.environ.get("PATH", os.defpath)])
    found = Acpx(environment(server.data_dir, tmp_path, PATH=path), project)
    yield found
    found.run("sessions", "close")  # what it keeps in the background ends with its session


@pytest.fixture
def local(server: Server) -> App:
    """The same person over HTTP."""
    token = (server.data_dir / TOKEN_FILE).read_text().strip()
    return App("local", token, "", server.client(token))


def list_sessions(local: App) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = local.http.get("/sessions").json()["sessions"]
    return found


def test_acpx_talks_answers_what_it_is_asked_and_comes_back(acpx: Acpx, local: App) -> None:
    acpx.run("sessions", "new")
    (row,) = list_sessions(local)
    assert row["cwd"] == str(acpx.project)
    assert acpx.say("echo hello") == "hello"
    assert acpx.say("ask to go on", "--approve-all") == "permission: allow_once"
    assert acpx.say("ask once more", "--deny-all") == "permission: reject_once"
    acpx.run("sessions", "close")
    assert row["session_id"] in acpx.run("--format", "json", "sessions", "list")
    acpx.run("sessions", "new", "--resume-session", row["session_id"])
    assert "echo hello" in json.loads(acpx.say("recall")), "it came back to another session"
    assert [one["session_id"] for one in list_sessions(local)] == [row["session_id"]]
