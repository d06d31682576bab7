"""A server that a command has started by itself: one, private, and gone when nobody needs it."""

import json
import os
import re
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from clawdforge.wire.local import LOCK_FILE
from tests.api.harness import Server, until
from tests.cli.kit import Cli

pytestmark = pytest.mark.slow


def holder(cli: Cli) -> int:
    return int(json.loads((cli.data_dir / LOCK_FILE).read_text())["pid"])


def test_one_is_started_and_said_so_and_used_again(alone: Cli) -> None:
    done = alone("-p", "echo hello")
    assert done.stdout == "hello\n"
    assert "started a server" in done.stderr
    pid = holder(alone)
    until(lambda: alone.json("server", "status", "--json")["live_agents"] == 0, "the agent's end")
    for name in ("server.log", "local.token", "admin.token"):
        assert stat.S_IMODE((alone.data_dir / name).stat().st_mode) == 0o600
    assert stat.S_IMODE(alone.data_dir.stat().st_mode) == 0o700
    process = psutil.Process(pid)
    assert os.getsid(pid) == pid  # nothing that happens to our terminal happens to it
    assert "--idle-exit" in process.cmdline()
    assert process.cwd() == str(alone.data_dir)
    again = alone("-p", "-c", "recall")
    assert "started" not in again.stderr
    until(lambda: alone.json("server", "status", "--json")["live_agents"] == 0, "the next agent's end")
    with alone.start("-p", "chunks 50 8 20") as reader:  # whoever reads has seen enough
        assert reader.stdout is not None
        assert reader.stdout.read(8) == "1...... "
        reader.stdout.close()
        assert reader.wait(60) == 1
    until(lambda: alone.json("server", "status", "--json")["live_agents"] == 0, "the last agent's end")
    assert holder(alone) == pid


def test_two_commands_at_once_end_with_one_server(alone: Cli) -> None:
    both = [alone.start("-p", f"echo number {number}") for number in range(3)]
    said = [process.communicate(timeout=60) for process in both]
    assert sorted(out for out, _ in said) == [f"number {number}\n" for number in range(3)]
    assert sum("started a server" in told for _, told in said) == 1
    assert len(alone.json("sessions", "list", "--json")) == 3
    servers = [
        process
        for process in psutil.process_iter(["cmdline"])
        if "serve" in (process.info["cmdline"] or []) and str(alone.data_dir) in process.info["cmdline"]
    ]
    assert [process.pid for process in servers] == [holder(alone)]


def test_a_server_that_cannot_start_is_explained(make: Callable[..., Cli], tmp_path: Path) -> None:
    cli = make(tmp_path / "data", CLAWDFORGE_SWEEP_SECS="never")
    done = cli("sessions", "list", code=7)
    assert "CLAWDFORGE_SWEEP_SECS" in done.stderr
    assert str(tmp_path / "data" / "server.log") in done.stderr
    (tmp_path / "file").write_text("")
    assert "--data-dir" in make(tmp_path / "file" / "data")("sessions", "list", code=1).stderr


def test_a_project_does_not_set_up_the_server(alone: Cli) -> None:
    (alone.project / "clawdforge.toml").write_text('[agents.claude]\ncommand = "/nonexistent/evil"\n')
    assert alone("-p", "echo safe").stdout == "safe\n"


def test_a_killed_server_is_replaced_and_nothing_is_lost(alone: Cli) -> None:
    """S4-90."""
    alone("-p", "echo before")
    psutil.Process(holder(alone)).kill()
    done = alone("-p", "-c", "recall")
    assert done.stdout == '["echo before"]\n'
    assert "started a server" in done.stderr


def test_an_idle_server_leaves_but_not_under_a_running_turn(tmp_path: Path) -> None:
    server = Server(tmp_path / "data", None, "--idle-exit", "1.5")
    try:
        app = server.app()
        began = time.monotonic()
        assert app.turn(app.session(), "echo x\nsleep 2.5").status_code == 200
        assert time.monotonic() - began > 2.5
        detached = app.session()
        app.http.post(f"/sessions/{detached}/turns", json={"prompt": "sleep 2.5"})
        began = time.monotonic()
        until(lambda: server.process.poll() is not None, "its end")
        assert time.monotonic() - began > 3.5
        assert server.process.returncode == 0
    finally:
        server.stop()


def test_an_idle_server_stays_while_a_schedule_waits_for_its_time(tmp_path: Path) -> None:
    server = Server(tmp_path / "data", None, "--idle-exit", "1.5")
    try:
        began = time.monotonic()
        at = (datetime.now(UTC) + timedelta(seconds=5)).isoformat()
        made = server.app().http.post("/schedules", json={"prompt": "echo x", "at": at})
        assert made.status_code == 200
        until(lambda: server.process.poll() is not None, "its end")
        assert time.monotonic() - began > 5
    finally:
        server.stop()


def test_the_list_is_quick(cli: Cli) -> None:
    """Under 300 ms with a server running; other work on this machine must not count, so CPU time it is."""
    cli("sessions", "list")
    spent = []
    for _ in range(3):
        command = [sys.executable, "-m", "clawdforge", "sessions", "list", "--all", "--quiet"]
        _, status, used = os.wait4(os.posix_spawn(sys.executable, command, dict(cli.env)), 0)
        assert status == 0
        spent.append(used.ru_utime + used.ru_stime)
    assert min(spent) < 0.3


README = Path(__file__).parents[2] / "README.md"

AFTER_A_STOP = """
import json, os, pathlib, signal, sys
from clawdforge import AsyncForge, Forge
import asyncio

with Forge() as forge:
    session = forge.create_session(agent="demo")
    first = forge.base_url
    lock = pathlib.Path(os.environ["CLAWDFORGE_DATA_DIR"]) / "server.lock"
    pid = json.loads(lock.read_text())["pid"]
    os.kill(pid, signal.SIGKILL)
    print(session.turn("again").ok, forge.base_url != first)

    async def main():
        async with AsyncForge() as other:
            print(other.base_url == forge.base_url, len(await other.list_sessions()))

    asyncio.run(main())
"""


def run_python(cli: Cli, code: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=dict(cli.env),
        cwd=cli.project,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


def test_a_program_starts_one_as_a_command_does_and_finds_the_next(alone: Cli) -> None:
    """The README's example works by itself; a client whose server is gone goes on with another."""
    example = re.search(r"^```python\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)
    assert example is not None
    assert run_python(alone, example[1]).strip()
    pid = holder(alone)
    assert alone.json("server", "status", "--json")["in_background"]
    assert run_python(alone, AFTER_A_STOP).split() == ["True", "True", "True", "2"]
    assert holder(alone) != pid


def test_a_program_that_wants_none_started_is_told_so(alone: Cli) -> None:
    code = "from clawdforge import Forge\ntry: Forge(start=False)\nexcept ValueError as error: print(error)"
    assert "clawdforge serve" in run_python(alone, code)
    assert not (alone.data_dir / LOCK_FILE).exists()
