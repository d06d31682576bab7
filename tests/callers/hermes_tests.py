"""Runs the HTTP tests of hermes-webui itself on this server, and lists those that fail, each with its reason.

    python -m tests.callers.hermes_tests [--source REPOSITORY] [--version April|August] [--only WORD]

A test counts if it asks the server, and asks only for what is promised: no route that is answered with 501 or
quietly, and nothing of the page itself.
One that fails for no reason that is known makes this command fail.
"""

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from clawdforge.http.dialects.hermes.quiet import QUIET
from tests.api.harness import Server
from tests.callers.beside import OURS, served
from tests.callers.desk import SETTINGS
from tests.callers.front_end import PUBLIC, VERSIONS, FrontEnd, NotToBeHad, unpack
from tests.callers.hermes_reasons import REASONS
from tests.callers.hermes_watch import NOTES

ROOT: Final = Path(__file__).parents[2]
ASKS: Final = re.compile(r"urlopen|HTTPConnection|TEST_BASE|_pytest_port")
KNOWS: Final = re.compile(r"TEST_BASE|TEST_PORT|_pytest_port")
"""Of the files that ask somebody, those which know where the server is. The others ask what they put in place
of a provider, or hermes' own program, which they start with settings of its own, and wait for minutes."""
DRIVES: Final = re.compile(r"playwright")
"""Tests that look at the page in a browser are none of HTTP."""
AS_ITS_OWN: Final = {"CLAWDFORGE_MAX_FILE_BYTES": "20MiB"}
"""What an operator chooses here and its own server has fixed."""
STAND_IN: Final = """import os, sys
os.chdir({root!r})
os.execv(sys.executable, [sys.executable, "-m", "tests.callers.hermes_tests", "--stand-in", {static!r}])
"""
UPSTREAM: Final = "CLAWDFORGE_TEST_UPSTREAM"
SECONDS: Final = 1200
UNSERVED: Final = 501


@dataclass(frozen=True)
class Noted:
    """One of their tests: what it asked for, and what it failed with, if it did."""

    test: str
    asked: list[tuple[str, int]]
    failure: str

    @property
    def is_promised(self) -> bool:
        ours = (route.partition(" ")[2].startswith(OURS) and route not in QUIET for route, _ in self.asked)
        return all(ours) and all(status != UNSERVED for _, status in self.asked)

    @property
    def reason(self) -> str | None:
        """Why it fails here, where that is known."""
        name = self.test.removeprefix("tests/")
        return next((why for why, tests in REASONS.items() if name in tests), None)


def main() -> int:
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--source", default=PUBLIC, help="a git repository that has its commits")
    given.add_argument("--version", choices=list(VERSIONS), action="append", help="only this version")
    given.add_argument("--only", default="", help="only files with this word in their name")
    given.add_argument("--stand-in", type=Path, help=argparse.SUPPRESS)
    options = given.parse_args()
    if options.stand_in:
        return stand_in(options.stand_in)
    unexpected = 0
    for version in options.version or VERSIONS:
        with tempfile.TemporaryDirectory() as name:
            try:
                found = run(unpack(version, options.source, Path(name), "."), Path(name), options.only)
            except NotToBeHad as reason:
                print(f"hermes-webui is not to be had: {reason}")
                return 2
        unexpected += tell(version, found)
    return 1 if unexpected else 0


def run(checkout: Path, folder: Path, only: str) -> list[Noted]:
    """Their tests as they are; in place of their server stands ours, with their page beside it."""
    notes = folder / "notes"
    home = folder / "home"
    home.mkdir()
    (checkout / "server.py").write_text(STAND_IN.format(root=str(ROOT), static=str(checkout / "static")))
    chosen = sorted((checkout / "tests").glob("test_*.py"))
    files = [path for path in chosen if only in path.name and asks(path.read_text())]
    server = Server(folder / "data", {**SETTINGS, **AS_ITS_OWN}, "--trust-loopback")
    try:
        body = {"app_name": "local", "workspace_roots": [str(folder.resolve())]}
        assert server.admin().post("/admin/apps", json=body).status_code == 200
        known = {"PATH", "LANG", "VIRTUAL_ENV"}
        env = {
            **{name: value for name, value in os.environ.items() if name in known},
            "HOME": str(home),
            "HERMES_HOME": str(home / ".hermes"),
            "HERMES_WEBUI_PYTHON": sys.executable,
            "HERMES_WEBUI_TEST_PORT": str(_find_port()),
            "PYTHONPATH": str(Path(__file__).parent),
            NOTES: str(notes),
            UPSTREAM: server.url,
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        command = [sys.executable, "-m", "pytest", "-q", "-p", "hermes_watch", "-p", "no:cacheprovider"]
        command += ["--continue-on-collection-errors", "--tb=short", *map(str, files)]
        done = subprocess.run(
            command, cwd=checkout, env=env, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    finally:
        server.stop()
    if not notes.exists():
        raise NotToBeHad(f"its tests do not run: {done.stdout[-1000:]} {done.stderr[-1000:]}")
    return [Noted(**json.loads(line)) for line in notes.read_text().splitlines()]


def asks(text: str) -> bool:
    return bool(ASKS.search(text) and KNOWS.search(text)) and not DRIVES.search(text)


def stand_in(static: Path) -> int:
    """What their `server.py` is here: serves their page and passes the rest on, until it is ended."""
    there = os.environ[UPSTREAM]
    with served(FrontEnd("", static, ""), lambda: there, int(os.environ["HERMES_WEBUI_PORT"])):
        threading.Event().wait()
    return 0


def tell(version: str, found: list[Noted]) -> int:
    """Print what there is to say; how many failures nobody knows a reason for."""
    promised = [one for one in found if one.is_promised]
    failed = [one for one in promised if one.failure]
    print(
        f"{version}: {len(found)} tests ask the server; {len(found) - len(promised)} need what is not served."
    )
    print(f"{version}: of the other {len(promised)}, {len(promised) - len(failed)} pass.")
    for why, count in Counter(one.reason for one in failed if one.reason).items():
        print(f"{version}: {count} fail: {why}:")
        print("\n".join(f"    {one.test}" for one in failed if one.reason == why))
    unexpected = [one for one in failed if one.reason is None]
    for one in unexpected:
        print(f"{version}: unexpected: {one.test}: {' '.join(one.failure.split())[:200]} {one.asked[-3:]}")
    return len(unexpected)


def _find_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
