"""`clawdforge server`: the server in the background is seen, stopped, renewed, and its log read."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from clawdforge.cli import main
from clawdforge.cli.commands import server as commands_of_server
from tests.api.harness import Server, until
from tests.cli.kit import Cli
from tests.cli.test_background import holder

pytestmark = pytest.mark.slow


def is_gone(pid: int) -> bool:
    """Nobody may have asked for its exit code."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_status_stop_and_restart(alone: Cli) -> None:
    assert "no server runs on" in alone("server", "status", code=7).stderr
    assert "no server runs on" in alone("server", "stop").stderr
    alone("-p", "echo before")
    first = alone.json("server", "status", "--json")
    assert (first["pid"], first["in_background"], first["changed_since"]) == (holder(alone), True, [])
    assert first["url"] in alone("server", "status").stdout
    assert "started a server" in alone("server", "restart").stderr
    second = alone.json("server", "status", "--json")
    assert second["pid"] != first["pid"]
    until(lambda: is_gone(first["pid"]), "the end of the first")
    assert alone("-p", "-c", "recall").stdout == '["echo before"]\n'
    assert "has stopped" in alone("server", "stop").stderr
    until(lambda: is_gone(second["pid"]), "the end of the second")


def test_a_new_key_is_told_and_a_restart_brings_it(make: Callable[..., Cli], tmp_path: Path) -> None:
    old = make(tmp_path / "data")
    old("-p", "echo before")
    new = make(tmp_path / "data", OPENAI_API_KEY="sk-of-today", TERM_PROGRAM="another")
    assert new.json("server", "status", "--json")["changed_since"] == ["OPENAI_API_KEY"]
    assert "OPENAI_API_KEY; renew it with `clawdforge server restart`" in new("server", "status").stdout
    assert "renew it" not in new("-p", "echo x").stderr  # a script has no use for it
    terminal = new.talk()
    assert "started before this changed: OPENAI_API_KEY" in terminal.text
    terminal.send("/exit")
    new("server", "restart")
    assert new.json("server", "status", "--json")["changed_since"] == []
    assert psutil.Process(holder(new)).environ()["OPENAI_API_KEY"] == "sk-of-today"
    noted = (tmp_path / "data" / "server.environment").read_text()
    assert "sk-of-today" not in noted
    assert (tmp_path / "data" / "server.environment").stat().st_mode & 0o777 == 0o600
    new("server", "stop")


def test_a_server_that_was_started_by_hand_is_not_replaced(make: Callable[..., Cli], tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    try:
        cli = make(tmp_path / "data")
        assert cli.json("server", "status", "--json")["in_background"] is False
        assert "by hand or by a service" in cli("server", "restart", code=1).stderr
        assert "writes to where it was started" in cli("server", "logs", code=4).stderr
        assert "leave out --server" in cli("server", "status", "--server", server.url, code=2).stderr
        cli("server", "stop")
        until(lambda: server.process.poll() is not None, "the end of the server")
    finally:
        server.stop(signal.SIGKILL)


def test_the_log_is_read_and_followed(alone: Cli) -> None:
    alone("-p", "echo x")
    alone("server", "stop")
    path = alone.data_dir / "server.log"
    with path.open("a") as file:
        file.write("one\ntwo\n")
    assert alone("server", "logs", "-n", "2").stdout == "one\ntwo\n"
    assert alone("server", "logs", "-n", "0").stdout == ""
    following = alone.start("server", "logs", "-n", "1", "-f")
    assert following.stdout is not None
    assert following.stdout.readline() == "two\n"
    path.rename(path.with_suffix(".log.1"))
    path.write_text("three\n")
    assert following.stdout.readline() == "three\n"
    os.kill(following.pid, signal.SIGINT)
    assert following.wait(30) == 130


def test_a_restart_has_these_variables_whoever_is_faster(
    make: Callable[..., Cli], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An open conversation looks for a server all the time, and starts one with its own variables."""
    old, new = make(tmp_path / "data"), make(tmp_path / "data", OPENAI_API_KEY="sk-of-today")
    started: list[str] = []

    def start_late(_folder: Path, _say: Callable[[str], None]) -> str:
        started.append((new if started else old)("-p", "echo x").stdout)
        return ""

    old("-p", "echo before")
    monkeypatch.setattr(commands_of_server, "start_server", start_late)
    for name in os.environ.keys() - new.env.keys():
        monkeypatch.delenv(name)
    for name, value in new.env.items():
        monkeypatch.setenv(name, value)
    done = CliRunner().invoke(main, ["server", "restart"])
    assert done.exit_code == 0, done.output
    assert len(started) == 2
    assert psutil.Process(holder(new)).environ()["OPENAI_API_KEY"] == "sk-of-today"
    new("server", "stop")
