"""The command line as a person meets it: help, versions, bad settings, and whose secrets go where."""

import fcntl
import json
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

import clawdforge
from clawdforge.cli import main
from clawdforge.cli.commands.config import format_value
from clawdforge.cli.failures import Exit, Failure
from clawdforge.cli.lazy import LazyGroup
from clawdforge.cli.target.defaults import read_defaults
from clawdforge.cli.target.options import Target

SECRET = "cfa_made_up_for_this_test"


def run(*args: str, **env: str | None) -> Result:
    return CliRunner(env={"CLAWDFORGE_URL": None, "CLAWDFORGE_ADMIN_TOKEN": None, **env}).invoke(main, args)


def commands(
    group: click.Group, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
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


@pytest.mark.parametrize(
    ("path", "command"),
    [(path, command) for path, command in [((), main), *ALL] if isinstance(command, LazyGroup)],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_the_list_of_commands_says_what_they_say_themselves(
    path: tuple[str, ...], command: LazyGroup
) -> None:
    for name, later in command.lazy.items():
        real = later.load().get_short_help_str(500)
        assert later.about.removesuffix(".") == real.removesuffix("."), (*path, name)


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["sessions", "--help"]])
def test_help_imports_no_command(words: list[str]) -> None:
    code = (
        "import sys\nfrom clawdforge.cli import main\n"
        f"main({words!r}, standalone_mode=False)\n"
        "print(sorted(name for name in sys.modules if name.startswith('clawdforge')), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Commands:" in done.stdout
    for name in ("chat", "catalog", "upkeep", "sessions_change", "serve"):
        assert f"clawdforge.cli.commands.{name}'" not in done.stderr
    assert "clawdforge.cli.target.connect" not in done.stderr
    assert "clawdforge.client.models" not in done.stderr


@pytest.mark.parametrize("words", [["--version"], ["-V"], ["version"]])
def test_version(words: list[str]) -> None:
    assert clawdforge.__version__ in run(*words).output


def test_the_list_of_sessions_starts_without_the_server_and_without_the_sdk() -> None:
    code = (
        "import sys, clawdforge.cli, clawdforge.cli.commands.sessions; "
        "heavy = {'pydantic', 'httpx2', 'rich', 'prompt_toolkit', 'asyncio'}; "
        "server = {'fastapi', 'starlette', 'uvicorn', 'apsw', 'clawdforge.server'}; "
        "print(sorted((heavy | server) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_one_answer_is_prepared_without_what_only_other_commands_need() -> None:
    code = (
        "import sys, clawdforge.cli.commands.chat; "
        "heavy = {'httpx2', 'rich', 'prompt_toolkit', 'asyncio'}; "
        "others = {f'clawdforge.wire.{name}' for name in ('admin', 'browser', 'budgets', 'disk', 'shares')}; "
        "print(sorted((heavy | others | {'clawdforge.client.models'}) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_server_imports_nothing_of_the_faces_that_are_closed() -> None:
    """The editors' face alone delayed every start by a tenth."""
    code = (
        "import sys, clawdforge.server; "
        "others = {'httpx2', 'websockets', 'opentelemetry.sdk'}; "
        "others |= {'clawdforge.client._async', 'clawdforge.faces', 'clawdforge.telemetry.collector'}; "
        "faces = {f'clawdforge.http.dialects.{name}.routers' for name in ('acp', 'mcp', 'openai', 'ui')}; "
        "print(sorted((others | faces) & set(sys.modules)))"
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
        (tmp_path / "admin.token").write_text(SECRET + "\n")
        with (tmp_path / "server.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            lock.write(json.dumps({"url": url, "pid": 1}))
            lock.flush()
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
    assert result.exit_code == Exit.AUTH
    assert "CLAWDFORGE_ADMIN_TOKEN" in result.output
    assert Recorder.seen == []
    result = run("token", "create", "mine", "--server", url, CLAWDFORGE_ADMIN_TOKEN="cfa_of_that_server")
    assert result.output == "cf_new\n"
    assert Recorder.seen[0][1] == "Bearer cfa_of_that_server"


def test_no_server_is_told_plainly() -> None:
    result = run("token", "create", "mine", "--server", "http://127.0.0.1:1", CLAWDFORGE_ADMIN_TOKEN=SECRET)
    assert result.exit_code == Exit.UNREACHABLE
    assert "clawdforge serve" in result.output


def test_an_address_is_an_address() -> None:
    result = run("sessions", "list", "--server", "localhost:8800", CLAWDFORGE_TOKEN="x")
    assert result.exit_code == Exit.USAGE
    assert "http://" in result.output


def test_a_server_elsewhere_needs_a_token(tmp_path: Path) -> None:
    result = run("sessions", "list", "--server", "http://127.0.0.1:1", CLAWDFORGE_DATA_DIR=str(tmp_path))
    assert result.exit_code == Exit.AUTH
    assert "CLAWDFORGE_TOKEN" in result.output


@pytest.mark.usefixtures("server")
def test_the_folders_token_goes_to_the_folders_server_only(tmp_path: Path) -> None:
    (tmp_path / "local.token").write_text("cf_of_the_folder")
    result = run("sessions", "list", "--server", "http://127.0.0.1:1", CLAWDFORGE_DATA_DIR=str(tmp_path))
    assert result.exit_code == Exit.AUTH


@pytest.mark.parametrize(
    "words", [["sesions", "list"], ["tokn", "create"], ["--server", "http://x", "undoo"]]
)
def test_a_misspelt_command_is_not_taken_for_a_prompt(words: list[str]) -> None:
    result = run(*words)
    assert result.exit_code == Exit.USAGE
    assert "Did you mean" in result.output


@pytest.mark.parametrize(
    "words", [["-p"], ["--print", "--output-format", "xml"], ["-c", "-s", "abcdef", "-p", "x"]]
)
@pytest.mark.usefixtures("server")
def test_wrong_use_is_told_as_such(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "local.token").write_text("cf_of_the_folder")
    assert run(*words, "--data-dir", str(tmp_path)).exit_code == Exit.USAGE


def test_both_names_are_the_same_program() -> None:
    scripts = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts["mydeepagent"] == scripts["clawdforge"] == "clawdforge.cli:main"


def test_defaults_of_new_sessions(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    (home / "clawdforge").mkdir(parents=True)
    project.mkdir()
    (home / "clawdforge" / "config.toml").write_text(
        '[cli]\nagent = "mine"\nmodel = "m1"\npermission_mode = "approve_reads"\n'
    )
    (project / "clawdforge.toml").write_text('[cli]\nmodel = "m2"\npermission_mode = "approve_all"\n')
    env = {"XDG_CONFIG_HOME": str(home), "CLAWDFORGE_CLI_AGENT": "other"}
    found = read_defaults(env, project)
    assert found == {"agent": "other", "model": "m2", "permission_mode": "approve_reads"}


@pytest.mark.parametrize("text", ["[cli]\nagnt = 'x'\n", "[cli]\nagent = 1\n", "cli = 1\n", "[cli\n"])
def test_a_bad_table_of_the_command_line_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "clawdforge.toml").write_text(text)
    with pytest.raises(Failure) as caught:
        read_defaults({"HOME": str(tmp_path / "nobody")}, tmp_path)
    assert caught.value.exit_code == Exit.USAGE


def test_config_show_keeps_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    env = {"HOME": str(tmp_path), "CLAWDFORGE_ADMIN_TOKEN": SECRET, "CLAWDFORGE_PORT": "8901"}
    for flags in ([], ["--json"]):
        result = run("config", "show", *flags, **env)
        assert result.exit_code == 0, result.output
        assert SECRET not in result.output
        assert "8901" in result.output


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("max_body_bytes", 33_554_432, "33554432 (32 MiB)"),
        ("session_ttl_secs", 3600, "3600 s (1 h)"),
        ("session_hard_ttl_secs", 86_400, "86400 s (1 d)"),
        ("session_ttl_secs", 5400, "5400 s (90 min)"),
        ("run_ttl_secs", 7_776_000.0, "7776000 s (90 d)"),
        ("session_ttl_secs", 100, "100 s (1.7 min)"),
        ("heartbeat_secs", 59.5, "59.5 s"),
        ("idle_exit", 600, "600 s (10 min)"),
        ("idle_exit", None, "-"),
        ("port", 8800, "8800"),
        ("trust_loopback", True, "True"),
        ("allowed_hosts", ["a", "b"], "a, b"),
    ],
)
def test_config_show_says_numbers_in_units(key: str, value: object, shown: str) -> None:
    assert format_value(key, value) == shown


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str) -> None:
    assert "_CLAWDFORGE_COMPLETE" in run("completion", shell).output


def test_an_unexpected_error_is_no_traceback(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Target, "reach", lambda _: 1 / 0)
    result = run("sessions", "list", "--data-dir", str(tmp_path))
    assert result.exit_code == Exit.ERROR
    assert "Traceback" not in result.output
    assert "--verbose" in result.output
