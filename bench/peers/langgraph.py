"""`langgraph dev`: graphs in the server's own process, and threads in its memory."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.contenders import MANY, Contender
from bench.peers.kit import INSIDE, Peer
from bench.plain import Request, as_json
from proofs.kit.server import free_port

DOES: Final = frozenset({"start", "turn", "many", "rate", "chunks", "delay"})
"""It keeps nothing that one could measure on the disk."""
GRAPH: Final = f"{INSIDE / 'langgraph_graph.py'}:graph"
QUIET: Final = {"LANGGRAPH_CLI_NO_ANALYTICS": "1", "LANGSMITH_TRACING": "false", "LOG_LEVEL": "ERROR"}


class Threads:
    """The routes of the LangGraph platform."""

    mark = b"event: custom"
    headers: Mapping[str, str] = {}

    def make(self, *, stamping: bool = False) -> Request:  # noqa: ARG002 - one agent for all
        return as_json("POST", "/threads", {})

    def read_session(self, body: bytes) -> str:
        return str(json.loads(body)["thread_id"])

    def turn(self, session: str, prompt: str) -> Request:
        return as_json("POST", f"/threads/{session}/runs/wait", self._run(prompt))

    def stream(self, session: str, prompt: str) -> Request:
        return as_json("POST", f"/threads/{session}/runs/stream", self._run(prompt, stream_mode="custom"))

    def remove(self, session: str) -> Request | None:
        return Request("DELETE", f"/threads/{session}")

    def _run(self, prompt: str, **more: str) -> dict[str, object]:
        said = {"messages": [{"role": "user", "content": prompt}]}
        return {"assistant_id": "bench", "input": said, **more}


class LangGraph(Peer):
    def __init__(self) -> None:
        super().__init__("langgraph")

    @contextmanager
    def run(self, place: Path) -> Iterator[Contender]:
        port = free_port()
        place.mkdir(parents=True, exist_ok=True)
        config = place / "langgraph.json"
        config.write_text(json.dumps({"dependencies": ["."], "graphs": {"bench": GRAPH}}))
        command = [self.executable, "dev", "--no-browser", "--no-reload", "--config", str(config)]
        command += ["--host", "127.0.0.1", "--port", str(port), "--n-jobs-per-worker", str(MANY)]
        url, env = f"http://127.0.0.1:{port}", self.environment(place, **QUIET)
        with self.serve(command, place, url, "/ok", env) as pid:
            yield Contender(self.name, url, pid, Threads(), place, DOES)
