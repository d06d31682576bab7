"""What the benchmarks share: a real server with the scripted agent, and its app's client."""

import compileall
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import httpx2

from clawdforge.scripted import command as agent_command
from clawdforge.scripted import path as agent_path
from proofs.kit.report import commit, machine
from proofs.kit.server import ROOT


@contextmanager
def server(
    data: Path, module: Sequence[str] = ("clawdforge",), python: str = sys.executable, **env: str
) -> Iterator[tuple[httpx2.Client, int]]:
    """A real server with the scripted agent, and a client of its app `local`.

    `module` is what Python runs, with what stands before the words of the command.
    """
    # As an installation leaves it; where Python is told to write no compiled files, each agent would compile.
    compileall.compile_dir(Path(agent_path()).parent, quiet=1)
    scripted = " ".join(agent_command())
    variables = {**os.environ, "CLAWDFORGE_AGENT_SCRIPTED": scripted, "CLAWDFORGE_DATA_DIR": str(data), **env}
    command = [python, "-m", *module, "serve", "--port", env.get("CLAWDFORGE_PORT", "0")]
    with subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL) as process:
        try:
            url = ""
            deadline = time.monotonic() + 30
            while not url:
                assert process.poll() is None, "the server ended"
                assert time.monotonic() < deadline, "the server did not start"
                time.sleep(0.02)
                with suppress(FileNotFoundError, ValueError):  # it is not there yet, or not whole
                    url = json.loads((data / "server.lock").read_text())["url"]
            token = (data / "local.token").read_text().strip()
            headers = {"Authorization": f"Bearer {token}"}
            with httpx2.Client(base_url=url, headers=headers, timeout=600, verify=False) as http:
                yield http, process.pid
        finally:
            process.terminate()
            process.wait(timeout=30)


def describe_here(source: Path = ROOT) -> str:
    """What a figure has to be read with: the commit, the machine, and what else that has to do."""
    changes = ["git", "status", "--porcelain", "--untracked-files=no"]
    is_changed = subprocess.run(changes, cwd=source, capture_output=True, check=False).stdout
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    changed = " and changes" if is_changed else ""
    return f"{now}, commit {commit(source)}{changed}, {machine()}, load {os.getloadavg()[0]:.1f}"


def new_session(http: httpx2.Client) -> str:
    reply = http.post("/sessions", json={"agent": "scripted"})
    assert reply.status_code == 200, reply.text
    return str(reply.json()["session_id"])


def cpu_secs(pid: int) -> float:
    """The processor time of a process, by its threads that are there, without its children."""
    total = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            total += int((thread / "schedstat").read_text().split()[0])
    return total / 1e9


def count_system_calls(pid: int, work: Callable[[], object]) -> dict[str, int] | None:
    """The system calls of a process while work is done; None where strace cannot look."""
    strace = shutil.which("strace")
    if strace is None:
        return None
    with tempfile.NamedTemporaryFile() as report:
        command = [strace, "-f", "-c", "-U", "calls,name", "-o", report.name, "-p", str(pid)]
        with subprocess.Popen(command, stderr=subprocess.PIPE) as tracer:
            assert tracer.stderr
            attached = b"attached" in tracer.stderr.readline()
            try:
                work()
            finally:
                tracer.send_signal(signal.SIGINT)
                tracer.communicate(timeout=30)
        lines = (line.split() for line in Path(report.name).read_text().splitlines())
        found = {words[1]: int(words[0]) for words in lines if len(words) == 2 and words[0].isdigit()}
        found.pop("total", None)
        return found if attached else None
