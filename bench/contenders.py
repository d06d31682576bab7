"""Servers that are measured beside each other: how each is spoken to, and ours with the scripted agent."""

import compileall
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

import psutil

from bench.kit import cpu_secs, server
from bench.plain import EVENT_STREAM, Connection, Request, as_json
from clawdforge import __version__
from proofs.kit.report import commit

OURS: Final = "clawdforge"
BEFORE: Final = "before"
AGENT_PLACES: Final = ("clawdforge/scripted/__main__.py", "clawdforge/testing/agent/__main__.py")
"""Where a version has its scripted agent; 0.3.0 had it in the second."""

MANY: Final = 600
PLENTY: Final = {
    **dict.fromkeys(("CLAWDFORGE_MAX_LIVE_AGENTS", "CLAWDFORGE_APP_AGENTS"), str(MANY)),
    **dict.fromkeys(("CLAWDFORGE_APP_REQUESTS_PER_SEC", "CLAWDFORGE_APP_OPEN_REQUESTS"), "10000"),
    **dict.fromkeys(("CLAWDFORGE_MAX_LIVE_SESSIONS", "CLAWDFORGE_APP_SESSIONS"), "10000"),
    **dict.fromkeys(("CLAWDFORGE_MAX_CONNECTIONS", "CLAWDFORGE_MAX_CONNECTIONS_PER_PEER"), "2500"),
    "CLAWDFORGE_APP_READERS": "2000",
    "CLAWDFORGE_LOG_LEVEL": "error",
    "CLAWDFORGE_AGENT_STAMPING": f"{sys.executable} -I -S {Path(__file__).with_name('stamping.py')}",
}
"""Shares are not what is measured, nor is what a terminal is told."""


class Dialect(Protocol):
    """How a server is asked. Its agent understands `echo TEXT`, `sleep SECS`, `chunks N`, `stamps N MS`."""

    @property
    def mark(self) -> bytes:
        """What each chunk of an answer has once on a stream."""

    @property
    def headers(self) -> Mapping[str, str]:
        """What goes with each request."""

    def make(self, *, stamping: bool = False) -> Request:
        """A session, of an agent that understands stamps if that is not the usual one."""

    def read_session(self, body: bytes) -> str: ...

    def turn(self, session: str, prompt: str) -> Request:
        """Answered when the turn has ended."""

    def stream(self, session: str, prompt: str) -> Request:
        """The same, and its chunks as they come."""

    def remove(self, session: str, /) -> Request | None: ...


@dataclass
class Contender:
    """A server that runs. `does` are the rows that it can have, `preparing` the seconds of its start that
    went to other programs, and `beside` the processes that it does not do without, such as a database."""

    name: str
    url: str
    pid: int
    dialect: Dialect
    folder: Path
    does: frozenset[str] = frozenset()
    preparing: float = 0.0
    beside: tuple[int, ...] = ()
    is_forge: bool = False
    """Whether its agents are processes of their own, which are not the server."""

    async def connect(self) -> Connection:
        return await Connection.open(self.url, self.dialect.headers)

    def cpu(self) -> float:
        """Of the server, without what it has started; for a peer with it: there the agent is inside."""
        return cpu_secs(self.pid) if self.is_forge else sum(map(_cpu, tree(self.pid)))

    def cpu_of_all(self) -> float:
        """With the processes of agents, and with a database."""
        return sum(_cpu(one) for pid in (self.pid, *self.beside) for one in tree(pid))

    def memory(self) -> float:
        """Megabytes of the server, counted as `cpu` is."""
        processes = [psutil.Process(self.pid)] if self.is_forge else tree(self.pid)
        return sum(one.memory_info().rss for one in processes) / 1e6


class Entrant(Protocol):
    """Who can be started as a contender."""

    name: str

    def install(self) -> None:
        """Raises Unavailable, with the reason in words."""

    def versions(self) -> Mapping[str, str]: ...

    def run(self, folder: Path) -> AbstractContextManager[Contender]: ...


def tree(pid: int) -> list[psutil.Process]:
    top = psutil.Process(pid)
    return [top, *top.children(recursive=True)]


def _cpu(process: psutil.Process) -> float:
    try:
        return cpu_secs(process.pid)
    except (FileNotFoundError, ProcessLookupError):
        return 0.0


class Forge:
    """Our routes."""

    mark: Final = b"event: text\n"

    def __init__(self, headers: Mapping[str, str]) -> None:
        self.headers = headers

    def make(self, *, stamping: bool = False) -> Request:
        return as_json("POST", "/sessions", {"agent": "stamping" if stamping else "scripted"})

    def read_session(self, body: bytes) -> str:
        return str(json.loads(body)["session_id"])

    def turn(self, session: str, prompt: str) -> Request:
        return as_json("POST", f"/sessions/{session}/turn", {"prompt": prompt})

    def stream(self, session: str, prompt: str) -> Request:
        return as_json("POST", f"/sessions/{session}/turn?form=compact", {"prompt": prompt}, **EVENT_STREAM)

    def remove(self, session: str) -> Request | None:
        return Request("DELETE", f"/sessions/{session}")


@dataclass
class Ours:
    """This checkout, with an agent that is a process of its own, contained, and with what is kept on disk."""

    name: str = OURS
    python: str = sys.executable
    env: Mapping[str, str] = field(default_factory=dict)

    def install(self) -> None:
        """It is here."""

    def versions(self) -> Mapping[str, str]:
        return {OURS: __version__, "Python": sys.version.split()[0]}

    @contextmanager
    def run(self, folder: Path) -> Iterator[Contender]:
        with server(folder / "data", python=self.python, **PLENTY, **self.env) as (http, pid):
            headers = {"Authorization": http.headers["Authorization"]}
            url = str(http.base_url).rstrip("/")
            does = frozenset({"start", "turn", "many", "rate", "chunks", "delay", "disk"})
            yield Contender(self.name, url, pid, Forge(headers), folder / "data", does, is_forge=True)


@dataclass
class Before(Ours):
    """Another checkout, of another version, with the dependencies that it pins and the agent that it has."""

    name: str = BEFORE
    root: Path = Path()

    def install(self) -> None:
        self.python = str(self.root / ".venv" / "bin" / "python")
        source = self.root / "src"
        if not Path(self.python).exists():
            raise NotReady(f"make its environment first: {self.root}/scripts/bootstrap")
        agent = next(place for place in AGENT_PLACES if (source / place).exists())
        scripted = f"{Path(self.python).resolve()} -I -S {source / agent}"
        self.env = {"PYTHONPATH": str(source), "CLAWDFORGE_AGENT_SCRIPTED": scripted}
        compileall.compile_dir(source / "clawdforge", quiet=1)

    def versions(self) -> Mapping[str, str]:
        return {"commit": commit(self.root)}


@contextmanager
def running(
    command: list[str], folder: Path, env: Mapping[str, str], ready: Callable[[], bool], within: float
) -> Iterator[int]:
    """A peer's process until this is left, with all that it started; what it says goes into a file."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "log"
    with (
        log.open("wb") as said,
        subprocess.Popen(
            command,
            cwd=folder,
            env=dict(env),
            stdout=said,
            stderr=said,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        ) as process,
    ):
        try:
            deadline = time.monotonic() + within
            while not ready():
                if process.poll() is not None or time.monotonic() > deadline:
                    last = log.read_text(errors="replace").strip().splitlines()[-3:]
                    raise NotReady(f"{Path(command[0]).name} was not ready within {within:g} s: {last}")
                time.sleep(0.02)
            yield process.pid
        finally:
            end_all(process)


class NotReady(Exception):
    """A server that does not answer in time, or has ended."""


def end_all(process: "subprocess.Popen[bytes]") -> None:
    family = tree(process.pid) if process.poll() is None else []
    for one in family:
        with_grace(one.terminate)
    _, left = psutil.wait_procs(family, timeout=10)
    for one in left:
        with_grace(one.kill)
    process.wait(timeout=10)


def with_grace(end: Callable[[], None]) -> None:
    """It may be gone already."""
    try:
        end()
    except psutil.NoSuchProcess:
        return


@contextmanager
def fresh_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="clawdforge-bench-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)
