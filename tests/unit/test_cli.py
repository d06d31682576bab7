"""The command line as a person meets it: help, versions, bad settings, and whose secrets go where."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

import clawdforge
from clawdforge.cli import main

SECRET = "cfa_made_up_for_this_test"


def run(*args: str, **env: str | None) -> Result:
    return CliRunner(env={"CLAWDFORGE_URL": None, "CLAWDFORGE_ADMIN_TOKEN": None, **env}).invoke(main, args)


def commands(
    group: click.Group, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name, command in group.commands.items():
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


ALL = list(commands(main))


@pytest.mark.parametrize(("path", "command"), ALL, ids=[" ".join(path) for path, _ in ALL])
def test_every_command_and_option_has_help(path: tuple[str, ...], command: click.Command) -> None:
    result = run(*path, "--help")
    assert result.exit_code == 0
    assert command.help
    options = [option for option in command.params if isinstance(option, click.Option)]
    assert [option.name for option in options if not option.help] == []


@pytest.mark.parametrize("words", [["--version"], ["-V"], ["version"]])
def test_version(words: list[str]) -> None:
    assert clawdforge.__version__ in run(*words).output


def test_the_command_line_starts_without_the_server() -> None:
    code = (
        "import sys, clawdforge.cli; "
        "print(sorted({'fastapi', 'starlette', 'uvicorn', 'apsw', 'clawdforge.server'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_serve_says_what_is_wrong_with_a_setting(tmp_path: Path) -> None:
    config = tmp_path / "forge.toml"
    config.write_text("prot = 1\n")
    result = run("serve", "--config", str(config))
    assert result.exit_code == 1
    assert "did you mean port?" in result.output


def test_serve_refuses_to_trust_a_public_address(tmp_path: Path) -> None:
    result = run("--data-dir", str(tmp_path), "serve", "--host", "0.0.0.0", "--trust-loopback")  # noqa: S104
    assert result.exit_code == 1
    assert "loopback" in result.output
    assert list(tmp_path.iterdir()) == []


def test_serve_is_no_client() -> None:
    result = run("--server", "http://127.0.0.1:1", "serve")
    assert result.exit_code == 2


class Recorder(BaseHTTPRequestHandler):
    """Answers like a server and keeps what it was asked."""

    seen: list[tuple[str, str, Any]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.seen.append((self.path, self.headers["Authorization"], body))
        answer = json.dumps({"ok": True, "app_name": "mine", "token": "cf_new", "token_id": "t1"}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HTTPServer]:
    Recorder.seen = []
    with HTTPServer(("127.0.0.1", 0), Recorder) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{running.server_port}"
        (tmp_path / "server.lock").write_text(json.dumps({"url": url, "pid": 1}))
        (tmp_path / "admin.token").write_text(SECRET + "\n")
        yield running
        running.shutdown()
        thread.join()


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_data_dir_may_stand_anywhere(tmp_path: Path, place: int) -> None:
    words = ["token", "create", "mine"]
    result = run(*words[:place], "--data-dir", str(tmp_path), *words[place:], "--expires-in", "60")
    assert result.output == "cf_new\n"
    assert Recorder.seen == [
        ("/admin/tokens", f"Bearer {SECRET}", {"app_name": "mine", "expires_in_secs": 60})
    ]


def test_the_folders_secret_is_not_sent_to_another_server(tmp_path: Path, server: HTTPServer) -> None:
    url = f"http://127.0.0.1:{server.server_port}"
    result = run("--server", url, "token", "create", "mine", CLAWDFORGE_DATA_DIR=str(tmp_path))
    assert result.exit_code == 1
    assert "CLAWDFORGE_ADMIN_TOKEN" in result.output
    assert Recorder.seen == []
    result = run("token", "create", "mine", "--server", url, CLAWDFORGE_ADMIN_TOKEN="cfa_of_that_server")
    assert result.output == "cf_new\n"
    assert Recorder.seen[0][1] == "Bearer cfa_of_that_server"


def test_no_server_is_told_plainly(tmp_path: Path) -> None:
    (tmp_path / "admin.token").write_text(SECRET)
    (tmp_path / "server.lock").write_text(json.dumps({"url": "http://127.0.0.1:1", "pid": 1}))
    result = run("token", "create", "mine", "--data-dir", str(tmp_path))
    assert result.exit_code == 1
    assert "clawdforge serve" in result.output
