"""`opencode serve`: its agent is inside, and the model behind it is the scripted one of the tests."""

import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.contenders import Contender, running
from bench.peers.kit import Peer
from bench.plain import Request, as_json
from proofs.kit.server import ROOT, free_port
from tests.live.programs import OPENCODE

DOES: Final = frozenset({"start", "turn", "many"})
"""Its stream is one for all sessions, and a turn is asked for beside it: that is no stream of a turn."""
WORDS: Final = {"echo": "say:", "sleep": "hang ", "chunks": "slow:"}
MODEL_SECS: Final = 30.0


class Messages:
    """Its sessions; prompts are put as its model understands them."""

    mark = b""
    headers: Mapping[str, str] = {}

    def make(self, *, stamping: bool = False) -> Request:  # noqa: ARG002 - one agent for all
        return as_json("POST", "/session", {})

    def read_session(self, body: bytes) -> str:
        return str(json.loads(body)["id"])

    def turn(self, session: str, prompt: str) -> Request:
        word, _, rest = prompt.partition(" ")
        said = [{"type": "text", "text": f"{WORDS[word]}{rest}"}]
        return as_json("POST", f"/session/{session}/message", {"parts": said})

    def stream(self, session: str, prompt: str) -> Request:
        return self.turn(session, prompt)

    def remove(self, session: str) -> Request | None:
        return Request("DELETE", f"/session/{session}")


class OpenCode(Peer):
    def __init__(self) -> None:
        super().__init__("opencode")

    @contextmanager
    def run(self, place: Path) -> Iterator[Contender]:
        begun = time.perf_counter()
        port, behind = free_port(), place / "model"
        model = [sys.executable, "-m", "tests.support.model"]
        env = {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        with running(model, behind, env, lambda: has_address(behind), MODEL_SECS):
            address = (behind / "log").read_text().strip()
            for name, text in OPENCODE.files(address).items():
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                (place / name).write_text(text)
            preparing = time.perf_counter() - begun
            command = [self.executable, "serve", "--hostname", "127.0.0.1", "--port", str(port)]
            url, whole = f"http://127.0.0.1:{port}", self.environment(place, **OPENCODE.env(address))
            with self.serve(command, place, url, "/config", whole) as pid:
                yield Contender(self.name, url, pid, Messages(), place, DOES, preparing)


def has_address(folder: Path) -> bool:
    """The model says where it is, in one line."""
    return (folder / "log").read_text().endswith("\n")
