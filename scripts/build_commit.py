"""Puts the commit that a package is built from into it, where git knows it: a hook of the build backend."""  # noqa: INP001 - a script, not a package

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FILE = "commit.txt"
PLACES = {"wheel": f"clawdforge/{FILE}", "sdist": f"src/clawdforge/{FILE}"}
GIT = ("git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")


class CommitHook(BuildHookInterface):
    """A wheel that is made of an sdist takes over the file that is there; a checkout is asked at run time."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        if version == "editable" or not (root / ".git").exists():
            return
        try:
            done = subprocess.run(GIT, cwd=root, capture_output=True, text=True, check=False)
        except OSError:
            return
        if commit := done.stdout.strip():
            made = Path(tempfile.mkdtemp()) / FILE
            made.write_text(commit + "\n", encoding="ascii")
            build_data["force_include"][str(made)] = PLACES[self.target_name]
