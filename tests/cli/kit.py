"""The command line as a process of its own, in a project of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cli.terminal import Terminal

Done = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Cli:
    """Runs `clawdforge` on a data folder; each has its own project, and so its own list of sessions."""

    data_dir: Path
    project: Path
    env: Mapping[str, str]
    terminals: list[Terminal]
    programs: "list[subprocess.Popen[str]]" = field(default_factory=list)

    def __call__(self, *args: str, stdin: str = "", code: int = 0, cwd: Path | None = None) -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "clawdforge", *args],
            input=stdin,
            capture_output=True,
            text=True,
            env=dict(self.env),
            cwd=cwd or self.project,
            timeout=60,
            check=False,
        )
        assert done.returncode == code, f"{args} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def json(self, *args: str, **options: Any) -> Any:
        return json.loads(self(*args, **options).stdout)

    def start(self, *args: str) -> "subprocess.Popen[str]":
        program = subprocess.Popen(
            [sys.executable, "-m", "clawdforge", *args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=dict(self.env),
            cwd=self.project,
        )
        self.programs.append(program)
        return program

    def terminal(self, *args: str, **options: Any) -> Terminal:
        """The same on a terminal; with a ready line, where it is a conversation."""
        self.terminals.append(Terminal(*args, env=self.env, cwd=self.project, **options))
        return self.terminals[-1]

    def close(self) -> None:
        """End what a test did not."""
        for terminal in self.terminals:
            terminal.close()
        for program in self.programs:
            with program:
                program.kill()

    def talk(self, *args: str) -> Terminal:
        found = self.terminal(*args)
        found.expect(r"\n>$")
        return found


def environment(data_dir: Path, home: Path, **more: str) -> dict[str, str]:
    """As a person has it: no token, no address, only a data folder. Compiled files are kept, and used.

    A test runner's workers have COLUMNS and LINES of a terminal that is not ours.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CLAWDFORGE_", "XDG_"))}
    for name in ("PYTHONDONTWRITEBYTECODE", "COLUMNS", "LINES"):
        kept.pop(name, None)
    return {
        **kept,
        "HOME": str(home),
        "CLAWDFORGE_DATA_DIR": str(data_dir),
        **more,
    }
