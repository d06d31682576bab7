"""The first minutes of a newcomer, timed: `python -m bench.first [--tries N]`.

A clone of this checkout is installed with pip into an environment of its own, where nothing is set but HOME
and PATH. Then come a first answer on a terminal, the page, and single answers with and without a server.
Of the single answers the median is printed, and the processor time of the command itself: the clock also
counts whatever else the machine does.
"""

import argparse
import json
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx2

from tests.cli.terminal import CTRL_D, Terminal

TOP: Final = Path(__file__).parents[1]
SAY_HELLO: Final = ("-p", "Say hello.")
GREETING: Final = "I am the demo agent"
LIMITS: Final = {"terminal": 30.0, "page": 30.0, "cold": 2.0, "warm": 0.4}
STOP_SECS: Final = 30.0


@dataclass(frozen=True)
class Newcomer:
    """A person with a home, a project and nothing else."""

    place: Path

    @property
    def program(self) -> str:
        return str(self.place / "venv" / "bin" / "clawdforge")

    @property
    def project(self) -> Path:
        return self.place / "project"

    def env(self, home: str) -> dict[str, str]:
        (self.place / home).mkdir(exist_ok=True)
        return {"HOME": str(self.place / home), "PATH": "/usr/local/bin:/usr/bin:/bin"}

    def run(self, *command: str, home: str = "home") -> str:
        self.project.mkdir(exist_ok=True)
        done = subprocess.run(
            command,
            cwd=self.project,
            env=self.env(home),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=True,
        )
        return done.stdout

    def clone(self) -> None:
        self.run("git", "clone", "--quiet", str(TOP), str(self.place / "clone"))

    def install(self) -> None:
        self.run(sys.executable, "-m", "venv", str(self.place / "venv"))
        pip = (str(self.place / "venv" / "bin" / "pip"), "--quiet", "--disable-pip-version-check")
        self.run(*pip, "install", str(self.place / "clone"))

    def talk(self) -> float:
        """A conversation on a terminal; when the first words of the answer were there."""
        terminal = Terminal(env=self.env("home"), cwd=self.project, command=(self.program,))
        try:
            terminal.expect(r"\n>$", seconds=120)
            terminal.send("Say hello.")
            terminal.expect(GREETING, seconds=60)
            answered = time.monotonic()
            terminal.type(CTRL_D)
            terminal.wait(60)
            return answered
        finally:
            terminal.close()

    def open_page(self) -> None:
        address = self.run(self.program, "open", "--print", home="page-home").split()[-1]
        reply = httpx2.get(address, timeout=60)
        assert reply.status_code == 200
        assert "<title>" in reply.text

    def stop(self, home: str) -> None:
        """End the server that the command line has left in the background."""
        lock = self.place / home / ".local" / "share" / "clawdforge" / "server.lock"
        with suppress(OSError, ValueError, KeyError):
            pid = int(json.loads(lock.read_text())["pid"])
            os.kill(pid, signal.SIGTERM)
            end = time.monotonic() + STOP_SECS
            while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
                time.sleep(0.05)

    def answer(self, home: str) -> tuple[float, float]:
        """One `clawdforge -p`: seconds by the clock, and of the processor."""
        before, begin = used_by_children(), time.monotonic()
        said = self.run(self.program, *SAY_HELLO, home=home)
        took = time.monotonic() - begin
        assert GREETING in said, said
        return took, used_by_children() - before


def used_by_children() -> float:
    """Processor time of all commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def show(name: str, what: str, secs: float, processor: Sequence[float]) -> None:
    limit = LIMITS[name]
    own = f"{statistics.median(processor):5.2f} s"
    verdict = "" if secs <= limit else "over"
    print(f"{what:<46} {secs:6.2f} s  {own}   at most {limit:4.1f} s  {verdict}".rstrip(), flush=True)


def measure(newcomer: Newcomer, tries: int) -> None:
    begin, before = time.monotonic(), used_by_children()
    newcomer.clone()
    newcomer.install()
    installed, used = time.monotonic() - begin, used_by_children() - before
    begin, before = time.monotonic(), used_by_children()
    took = newcomer.talk() - begin
    show(
        "terminal",
        "from clone to the first answer on a terminal",
        installed + took,
        [used + used_by_children() - before],
    )
    begin, before = time.monotonic(), used_by_children()
    newcomer.open_page()
    took = time.monotonic() - begin
    show("page", "from clone to the page", installed + took, [used + used_by_children() - before])
    newcomer.stop("page-home")
    newcomer.stop("home")
    cold: list[tuple[float, float]] = []
    for _ in range(max(tries // 3, 1)):
        shutil.rmtree(newcomer.place / "cold-home", ignore_errors=True)
        cold.append(newcomer.answer("cold-home"))
        newcomer.stop("cold-home")
    show("cold", "`clawdforge -p`, which starts the server", *(columns(cold)))
    newcomer.answer("home")
    warm = [newcomer.answer("home") for _ in range(tries)]
    show("warm", "`clawdforge -p` beside a server", *(columns(warm)))


def columns(rows: list[tuple[float, float]]) -> tuple[float, list[float]]:
    return statistics.median(row[0] for row in rows), [row[1] for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tries", type=int, default=9)
    tries = parser.parse_args().tries
    print(f"{'':<46} {'clock':>8}  processor   load of the machine: {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory(prefix="first-", ignore_cleanup_errors=True) as folder:
        newcomer = Newcomer(Path(folder))
        try:
            measure(newcomer, tries)
        finally:
            for home in ("home", "page-home", "cold-home"):
                newcomer.stop(home)


if __name__ == "__main__":
    main()
