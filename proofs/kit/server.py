"""Control of one real server: start, trace, kill, look at its processes, memory and descriptors."""

import atexit
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, TypeVar
from urllib import request as urls

from clawdforge.scripted import path as agent_path
from proofs.kit.tracer import Tracer

ROOT = Path(__file__).resolve().parents[2]
ADMIN = "cf_admin_token_of_the_proofs_0123456789"
TRACERS = 5  # how many are tried, one after the other
STOP_SECS = 60.0
"""More than a server gives itself: beside other proofs a stop has taken half a minute."""

FORCED = "the server did not stop within"
T = TypeVar("T")


class Stuck(Exception):
    """Something that has to happen did not, within its bound."""


def until(found: Callable[[], T | None], what: str, seconds: float = 30.0) -> T:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = found()
        if value:
            return value
        time.sleep(0.005)
    raise Stuck(f"{what} did not happen within {seconds:g} s")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Zygote:
    """A process that forks servers, on the source that is to be proven."""

    def __init__(self, source: Path) -> None:
        env = {**os.environ, "PYTHONPATH": f"{source / 'src'}:{ROOT}"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "proofs.kit.zygote"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=env,
            process_group=0,  # in our session, so that no test of drivers takes it for an orphan
        )
        self._turn = threading.Lock()
        assert self._pipe(self.process.stdout).readline() == "ready\n", "the server's modules do not load"

    def fork(self, **order: Any) -> int:
        return int(self._ask(order))

    def exit_code(self, pid: int) -> int | None:
        """How it ended; None while it lives."""
        code = self._ask({"ended": pid})
        return None if code is None else int(code)

    def _ask(self, order: dict[str, Any]) -> Any:
        orders = self._pipe(self.process.stdin)
        with self._turn:  # servers may be started side by side
            orders.write(json.dumps(order) + "\n")
            orders.flush()
            return json.loads(self._pipe(self.process.stdout).readline())

    def close(self) -> None:
        with suppress(BrokenPipeError):
            self._pipe(self.process.stdin).close()
        self.process.wait(10)
        self._pipe(self.process.stdout).close()

    @staticmethod
    def _pipe(pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None
        return pipe


SHARES = tuple(
    f"CLAWDFORGE_{name}"
    for name in (
        *("APP_REQUESTS_PER_SEC", "APP_OPEN_REQUESTS", "APP_READERS", "APP_SESSIONS", "APP_TURNS"),
        *("MAX_CONNECTIONS", "MAX_CONNECTIONS_PER_PEER"),
    )
)
"""One app has all clients of a proof. Its share is not what is being proved."""


class Server:
    """`clawdforge serve` on one data folder and one port, through any number of lives."""

    def __init__(
        self,
        folder: Path,
        zygote: Zygote,
        *,
        source: Path = ROOT,
        env: Mapping[str, str] | None = None,
        flags: Sequence[str] = (),
        nofile: int | None = None,
        data_dir: Path | None = None,
        clock: Path | None = None,
    ) -> None:
        """`clock` says by how much the server's is ahead; see `follow_clock` in zygote.py."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.data_dir = data_dir or folder / "data"
        self.witness = folder / "witness.jsonl"
        self.witness.touch()
        self._config = folder / "clawdforge.toml"
        self._config.write_text("")
        self.log = folder / "server.log"
        self.port = free_port()
        self.pid = 0
        self._fd = -1
        self._cold: subprocess.Popen[bytes] | None = None
        self.starts: list[float] = []
        self._zygote = zygote
        self._nofile = nofile
        self._clock = clock
        self._tracer: Tracer | None = None
        self.arguments = ["serve", "--port", str(self.port), "--data-dir", str(self.data_dir), *flags]
        self.arguments += ["--config", str(self._config)]
        agent = f"{sys.executable} -I -S {agent_path()} --witness {self.witness}"
        self.env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("CLAWDFORGE_")},
            "PYTHONPATH": str(source / "src"),
            "HOME": str(folder),
            "CLAWDFORGE_ADMIN_TOKEN": ADMIN,
            "CLAWDFORGE_MAX_LIVE_SESSIONS": "100000",
            **dict.fromkeys(SHARES, "100000"),
            "CLAWDFORGE_LOG_LEVEL": "warning",
            "CLAWDFORGE_SPARE_AGENTS": "0",  # each starts when it likes; proofs that want them say so
            "CLAWDFORGE_AGENT_UIDS": "off",  # a user of its own would get a copy of the witness
            **(env or {}),
        }
        self.agent = agent
        self.program: Sequence[str] = (sys.executable,)  # of a cold server; another user may need another
        self.add_agent("scripted")

    def add_agent(self, name: str, flags: str = "") -> None:
        """A scripted agent, before the start. Its witness lies outside of the sandbox, in a file of all."""
        self.env[f"CLAWDFORGE_AGENT_{name.upper()}"] = f"{self.agent} {flags}"
        with self._config.open("a") as config:
            config.write(f'[agents.{name}]\ncredentials = ["{self.witness.name}"]\n')

    def start(self, *, cold: bool = False, trace: Sequence[str] = (), ready: bool = True) -> None:
        """`trace` are arguments of strace, which follows the server's threads but not its agents."""
        began = time.monotonic()
        if cold:
            with self.log.open("ab") as log:
                command = [*self.program, "-m", "clawdforge", *self.arguments]
                process = subprocess.Popen(
                    command, env=self.env, stdout=log, stderr=log, start_new_session=True
                )
                self.pid = process.pid
                self._cold = process
                self._hold(os.pidfd_open(self.pid))
        else:
            self._cold = None
            self.pid = self._zygote.fork(
                arguments=self.arguments,
                env=self.env,
                log=str(self.log),
                hold=bool(trace),
                nofile=self._nofile,
                clock=None if self._clock is None else str(self._clock),
            )
            self._hold(os.pidfd_open(self.pid))
        if trace:
            self._attach(trace)
        if ready:
            until(self.ready, "the server's start", 60)
            self.starts.append(time.monotonic() - began)

    def _hold(self, fd: int) -> None:
        """Hold the process by a descriptor: its pid may be another process's a moment later."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = fd

    @property
    def alive(self) -> bool:
        if self._cold is not None:
            self._cold.poll()
        if self._fd < 0:
            return False
        ended = select.poll()  # select cannot look at descriptors beyond 1023
        ended.register(self._fd, select.POLLIN)
        return not ended.poll(0)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._fd, number)

    def ready(self) -> bool:
        if not self.alive:
            raise Stuck(f"the server died: {self.log.read_text()[-2000:]}")
        return self.get("/readyz")[0] == 200

    def get(self, path: str, token: str = ADMIN) -> tuple[int, Any]:
        return self.call("GET", path, token=token)

    def call(
        self, method: str, path: str, body: Any = None, token: str = ADMIN, seconds: float = 30
    ) -> tuple[int, Any]:
        """A plain blocking request; status 0 when nobody answers."""
        url = f"http://127.0.0.1:{self.port}{path}"
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        try:
            with urls.urlopen(urls.Request(url, data, headers, method=method), timeout=seconds) as reply:
                return int(reply.status), _parse(reply.read())
        except urls.HTTPError as error:
            with error:
                return int(error.code), _parse(error.read())
        except OSError:
            return 0, None

    def token(self, app: str = "proof") -> str:
        status, reply = self.call("POST", "/admin/tokens", {"app_name": app})
        assert status == 200, reply
        return str(reply["token"])

    def freeze(self) -> None:
        """Nothing of it runs until `thaw`, but its agents may."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill the server as the kernel would: without a warning, with nothing flushed."""
        self._signal(signal.SIGKILL)
        self.wait_gone()

    def stop(self, seconds: float = STOP_SECS) -> None:
        self._signal(signal.SIGTERM)
        try:
            self.wait_gone(seconds)
        except Stuck:
            self._signal(signal.SIGKILL)
            raise
        if FORCED in self.log.read_text():
            raise Stuck("the server did not stop by itself")

    def wait_gone(self, seconds: float = 30) -> None:
        until(lambda: not self.alive, "the server's end", seconds)
        if self._tracer is not None:
            self._tracer.end()
        self.untrace()

    def trace(self, arguments: Sequence[str]) -> None:
        """Trace a running server. This needs root, since a server is protected from its own user."""
        self._attach(arguments)

    def _attach(self, arguments: Sequence[str]) -> None:
        """The server may die of an injected fault as soon as it is traced; the caller notices that."""
        words = ""
        for _ in range(TRACERS):
            self._tracer = Tracer(self.pid, arguments, self.folder)
            if self._tracer.wait_joined() or not self.alive:
                return
            words = self._tracer.words()
            self.untrace()
        raise Stuck(f"strace does not join the server: {words}")

    @property
    def is_traced(self) -> bool:
        return self._tracer is not None and self._tracer.alive

    def untrace(self) -> None:
        """Stop tracing a running server, which also ends injected faults."""
        if self._tracer is not None:
            self._tracer.leave()
            self._tracer = None

    def agents(self) -> list[int]:
        """Running processes of this server's agents, found by the witness in command line or environment."""
        mark = os.fsencode(str(self.witness))
        return [pid for pid, line in processes() if mark in line]

    def rss(self) -> int:
        pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGESIZE")

    def cpu_secs_in(self, seconds: float) -> float:
        """How much of the processors it takes in the next so many seconds."""
        before = self._cpu_secs()
        time.sleep(seconds)
        return self._cpu_secs() - before

    def _cpu_secs(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def fds(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._fd >= 0:
            self.kill()
            self._hold(-1)


@contextmanager
def zygote(source: Path) -> Iterator[Zygote]:
    """The zygote of this source. It is kept for the next proof and ends with this process."""
    made = _zygote(source)
    if made.process.poll() is not None:  # somebody ended it
        _zygote.cache_clear()
        made = _zygote(source)
    yield made


@functools.cache
def _zygote(source: Path) -> Zygote:
    made = Zygote(source)
    atexit.register(made.close)
    return made


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def processes() -> Iterator[tuple[int, bytes]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):
                line = (entry / "cmdline").read_bytes()
                if line and alive(int(entry.name)):
                    yield int(entry.name), line


def _parse(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body
