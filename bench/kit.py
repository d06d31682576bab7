"""What the benchmarks share: a real server with the scripted agent, and its app's client."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from clawdforge.scripted import command as agent_command


@contextmanager
def server(data: Path, **env: str) -> Iterator[tuple[httpx2.Client, int]]:
    """A real server with the scripted agent, and a client of its app `local`."""
    scripted = " ".join(agent_command())
    variables = {**os.environ, "CLAWDFORGE_AGENT_SCRIPTED": scripted, "CLAWDFORGE_DATA_DIR": str(data), **env}
    command = [sys.executable, "-m", "clawdforge", "serve", "--port", "0"]
    with subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL) as process:
        try:
            url = ""
            deadline = time.monotonic() + 30
            while not url:
                assert process.poll() is None, "the server ended"
                assert time.monotonic() < deadline, "the server did not start"
                time.sleep(0.02)
                lock = data / "server.lock"
                if lock.exists() and lock.read_text():
                    url = json.loads(lock.read_text())["url"]
            token = (data / "local.token").read_text().strip()
            headers = {"Authorization": f"Bearer {token}"}
            with httpx2.Client(base_url=url, headers=headers, timeout=600) as http:
                yield http, process.pid
        finally:
            process.terminate()
            process.wait(timeout=30)


def new_session(http: httpx2.Client) -> str:
    reply = http.post("/sessions", json={"agent": "scripted"})
    assert reply.status_code == 200, reply.text
    return str(reply.json()["session_id"])
