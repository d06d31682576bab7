"""agno's AgentOS with SQLite: agents run in the server's own process."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlencode
from uuid import uuid4

from bench.contenders import Contender
from bench.peers.kit import INSIDE, Peer
from bench.plain import Request
from proofs.kit.server import free_port

DOES: Final = frozenset({"start", "turn", "many", "rate", "chunks", "delay", "disk"})
FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}


class Runs:
    """Of one agent; a session comes with its first run."""

    mark = b'"event":"RunContent",'
    headers: Mapping[str, str] = {}

    def make(self, *, stamping: bool = False) -> Request:  # noqa: ARG002 - one agent for all
        return Request("GET", "/health")

    def read_session(self, body: bytes) -> str:
        json.loads(body)
        return uuid4().hex

    def turn(self, session: str, prompt: str, stream: str = "false") -> Request:
        form = {"message": prompt, "session_id": session, "stream": stream}
        return Request("POST", "/agents/bench/runs", urlencode(form).encode(), FORM)

    def stream(self, session: str, prompt: str) -> Request:
        return self.turn(session, prompt, "true")

    def remove(self, _session: str) -> Request | None:
        return None


class Agno(Peer):
    def __init__(self) -> None:
        super().__init__("agno")

    @contextmanager
    def run(self, place: Path) -> Iterator[Contender]:
        port = free_port()
        env = {"BENCH_DB": str(place / "agno.db"), "BENCH_PORT": str(port), "AGNO_TELEMETRY": "false"}
        command, url = [self.python, str(INSIDE / "agno_app.py")], f"http://127.0.0.1:{port}"
        with self.serve(command, place, url, "/health", self.environment(place, **env)) as pid:
            yield Contender(self.name, url, pid, Runs(), place, DOES)
