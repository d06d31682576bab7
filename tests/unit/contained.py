"""What tests of agent processes share: a hostile program, a spawner, and bounded waits."""

import asyncio
import contextlib
import functools
import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from clawdforge.core.models.agents import AgentSpec
from clawdforge.drivers.processes.containment import Containment, find_containment
from clawdforge.drivers.processes.environment import agent_env
from clawdforge.drivers.processes.process import AgentProcess
from clawdforge.drivers.processes.runtimes import Needs
from clawdforge.drivers.processes.spawner import Spawner
from clawdforge.drivers.processes.survivors import find_tagged, folder_id
from tests.needs import needs

BOOT = "boot-1"
LANDLOCK = pytest.param("landlock", marks=needs("landlock"))
SESSION = "7d1a6f0e-9f0b-4a53-8b52-6d9d5a0f0001"

# Ignores TERM and end of input; leaves a background child, one in another session, one forked twice, and one
# that has thrown its environment away. Each writes its own line to a file again and again.
HOSTILE = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
out = sys.argv[1]
def beat(name):
    while True:
        with open(os.path.join(out, name), "a") as f:
            f.write("x")
        time.sleep(0.002)
def start(name, *, setsid=False, twice=False, bare=False):
    if os.fork() == 0:
        if setsid:
            os.setsid()
        if twice and os.fork() != 0:
            os._exit(0)
        if bare:
            path = os.path.join(out, name)
            code = f"import time\\nwhile True:\\n open({path!r}, 'a').write('x'); time.sleep(0.002)"
            os.execve(sys.executable, [sys.executable, "-c", code], {})
        beat(name)
start("background")
start("session", setsid=True)
start("twice", setsid=True, twice=True)
start("bare", setsid=True, twice=True, bare=True)
print("ready", flush=True)
beat("main")
"""
NAMES = ("background", "session", "twice", "bare", "main")


def hostile(out: Path) -> list[str]:
    return [sys.executable, "-c", HOSTILE, str(out)]


def beats(out: Path) -> dict[str, int]:
    return {name: (out / name).stat().st_size if (out / name).exists() else 0 for name in NAMES}


async def until(condition: Callable[[], bool], within: float = 60.0) -> None:
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        await asyncio.sleep(0.005)


def still(out: Path, seconds: float = 0.15) -> bool:
    """Nobody writes any more: the files stand still for as long as 75 of their beats."""
    before = beats(out)
    time.sleep(seconds)
    return beats(out) == before


@functools.cache
def containment(kind: str) -> Containment:
    """Tried once: what works on this machine is the same for all tests of a process."""
    if kind == "tree":
        return find_containment("off", bwrap="no-such-bwrap")
    if kind == "landlock":
        return find_containment("auto", bwrap="no-such-bwrap")
    return find_containment("full" if kind == "bwrap-full" else "auto")


def groups_of(data: Path) -> list[Path]:
    """The folders of an agent's groups, in all hierarchies."""
    return [
        Path(here, name)
        for here, names, _ in os.walk("/sys/fs/cgroup")
        for name in names
        if name.startswith(f"clawdforge-{folder_id(data)}-")
    ]


class Bench:
    """A data folder with one session's home and workspace, and a spawner on it."""

    def __init__(self, root: Path, kind: str) -> None:
        self.data = root / "data"
        self.home = self.data / "homes" / SESSION
        self.workspace = self.data / "workspaces" / SESSION
        for folder in (self.home, self.workspace):
            folder.mkdir(parents=True)
        self.kind = kind
        self.spawner = Spawner(containment(kind), self.data, BOOT)
        self._started: list[AgentProcess] = []

    def env(self, **more: str) -> dict[str, str]:
        spec = AgentSpec(name="t", driver="acp", command=("x",), set_env=more)
        return agent_env(spec, self.home, os.environ)

    async def spawn(self, *argv: str, **more: str) -> AgentProcess:
        process = await self.spawner.spawn(
            argv,
            cwd=self.workspace,
            home=self.home,
            env=self.env(**more),
            tag=SESSION,
            needs=Needs(((sys.executable,),)),
        )
        self._started.append(process)
        return process

    async def hostile(self) -> AgentProcess:
        return await self.hostile_in(self.workspace)

    async def hostile_in(self, out: Path) -> AgentProcess:
        process = await self.spawn(*hostile(out))
        assert await asyncio.wait_for(process.stdout.readline(), 60) == b"ready\n"
        await until(lambda: all(beats(out).values()))
        return process

    def tagged(self) -> list[int]:
        folder = folder_id(self.data)
        return list(find_tagged(lambda tag: tag.folder == folder))

    async def close(self) -> None:
        for process in self._started:
            await process.close(eof_grace=0, term_grace=0)


@contextlib.asynccontextmanager
async def bench_on(root: Path, kind: str) -> AsyncIterator[Bench]:
    bench = Bench(root, kind)
    try:
        yield bench
    finally:
        await bench.close()
