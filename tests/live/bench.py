"""A real server with one real agent, a scripted model behind it, and the words to ask both."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from clawdforge import Forge
from clawdforge.client.models import Outcome, Turn
from clawdforge.drivers.processes.launching import SOURCE, find_compiled
from clawdforge.wire.local import TOKEN_FILE
from tests.api.harness import Server, until
from tests.live.installing import folder, search_path
from tests.live.programs import Program
from tests.support.model.endpoint import Endpoint, running

PATIENCE = 240.0
VERSION = re.compile(r"\d+\.\d+[\w.]*")
OUTER = frozenset({"bwrap", SOURCE.name, find_compiled(SOURCE).name, "host.py", "acpx"})
"""What stands between the server and an agent; a name in the path of a program."""


class LiveBench:
    """`forge` speaks to the server as any program would."""

    def __init__(
        self, place: Path, program: Program, model: Endpoint, settings: Mapping[str, str] | None = None
    ) -> None:
        self.program = program
        self.model = model
        operator = place / "operator"
        for name, text in program.files(model.url).items():
            path = operator / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        operator.mkdir(exist_ok=True)
        env = {
            "HOME": str(operator),
            "PATH": search_path(program),
            "CLAWDFORGE_AGENT_CLAUDE": "",
            "CLAWDFORGE_AGENT_START_SECS": "180",
            **program.env(model.url),
            **(settings or {}),
        }
        config = place / "clawdforge.toml"
        config.write_text(program.config)
        self.server = Server(place / "data", env, "--config", str(config), cold=True)
        self.forge = self._client()

    def _client(self) -> Forge:
        token = (self.server.data_dir / TOKEN_FILE).read_text().strip()
        return Forge(self.server.url, token=token)

    def crash(self) -> None:
        """SIGKILL the server and start it again on the same data."""
        self.forge.close()
        self.server.stop(signal.SIGKILL)
        self.server.start()
        self.forge = self._client()

    def close(self) -> None:
        self.forge.close()
        self.server.stop()

    def processes(self, session_id: str) -> list[psutil.Process]:
        """Those that have the session's home: the agent, and what stands around it."""
        found = []
        for process in psutil.Process(self.server.process.pid).children(recursive=True):
            with suppress(psutil.Error):
                if session_id in process.environ().get("HOME", ""):
                    found.append(process)
        return found

    def kill_agent(self, session_id: str) -> int:
        """SIGKILL the agent itself, and leave what stands around it to notice."""
        victims = [one for one in self.processes(session_id) if not _outer(one)]
        for process in victims:
            with suppress(psutil.Error):
                os.kill(process.pid, signal.SIGKILL)
        return len(victims)

    def kill_inside(self, session_id: str) -> int:
        """SIGKILL what the agent's own program has started, and leave that alone."""
        ours = [one for one in self.processes(session_id) if not _outer(one)]
        known = {one.pid for one in ours}
        victims = [one for one in ours if one.ppid() in known]
        for process in victims:
            with suppress(psutil.Error):
                os.kill(process.pid, signal.SIGKILL)
        until(lambda: not any(map(runs, victims)), "the end of what was killed")
        return len(victims)

    def put_to_sleep(self, session_id: str) -> None:
        """End the agent as when it has been idle for long."""
        assert self.processes(session_id), "nothing runs"
        self.forge.attach(session_id).let_agent_go()
        until(lambda: not self.processes(session_id), "the end of an idle agent", PATIENCE)

    def said(self, session_id: str, turn_index: int) -> str:
        """What was streamed of a turn so far."""
        events = self.forge.attach(session_id).events()
        return "".join(
            str(event.model_dump().get("content") or "")
            for event in events
            if event.type == "text" and event.turn == turn_index
        )

    def ended(self, session_id: str, turn_index: int, seconds: float = PATIENCE) -> Turn:
        def look() -> Turn | None:
            turns = self.forge.attach(session_id).turns(after=turn_index - 1)
            turn = next(iter(turns), None)
            return turn if turn is not None and turn.state == "ended" else None

        return until(look, f"the end of turn {turn_index}", seconds)

    def talking(self, session_id: str, prompt: str, words: str = "1 2 ") -> int:
        """Start a turn and wait until the agent streams these words."""
        turn = self.forge.attach(session_id).submit(prompt).turn_index
        until(
            lambda: words in self.said(session_id, turn) or self.ended_early(session_id, turn),
            "the first words",
            PATIENCE,
        )
        return turn

    def ended_early(self, session_id: str, turn_index: int) -> bool:
        turn = next(iter(self.forge.attach(session_id).turns(after=turn_index - 1)), None)
        assert turn is None or turn.outcome in (None, Outcome.COMPLETED), turn
        return turn is not None and turn.state == "ended"

    def version(self) -> str | None:
        """As `GET /agents` tells it, or of the libraries that a graph is made of."""
        if self.program.libraries:
            first, *rest = self.program.libraries
            return ", ".join([version(first), *(f"{name} {version(name)}" for name in rest)])
        agents = {agent.name: agent for agent in self.forge.agents()}
        told = agents[self.program.called].version or self._asked_version()
        tools = [f"{tool.name} {self.forge.healthz().acpx_version}" for tool in self.program.beside]
        return ", ".join([told, *tools]) if told else None

    def _asked_version(self) -> str | None:
        """The server does not ask a program whose command was given by somebody."""
        if not self.program.pip:
            return None
        command = [str(folder(self.program) / self.program.program), "--version"]
        said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE).stdout
        found = VERSION.search(said)
        return found[0] if found else None

    def asked(self, since: int) -> list[dict[str, Any]]:
        """Requests to the model from number `since` on, without those for a title."""
        return [one for one in self.model.requests()[since:] if not one["aside"]]


def runs(process: psutil.Process) -> bool:
    """A process that nobody has waited for yet is over all the same."""
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def _outer(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return any(OUTER.intersection(Path(word).parts) for word in process.cmdline()[:4])
    return True


@contextmanager
def live(place: Path, program: Program, settings: Mapping[str, str] | None = None) -> Iterator[LiveBench]:
    """`settings` are variables of the server."""
    with running() as model:
        bench = LiveBench(place, program, model, settings)
        try:
            yield bench
        finally:
            bench.close()
