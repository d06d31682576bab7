"""Node.js on this machine: which version it is, and whether agents that come by npm run with it."""

import re
import subprocess
from collections.abc import Sequence
from typing import Final

NODE: Final = (22, 13)
"""Older ones are given old versions of agents by npm, without a word."""

Version = tuple[int, ...]


def comes_by_npm(command: Sequence[str]) -> bool:
    """Whether what this command installs is a program for Node.js."""
    return command[:1] in (["npm"], ["npx"])


def find_fault(node: Version | None) -> str | None:
    """What is wrong with this version, as the end of a sentence; None when it will do."""
    wanted = name_version(NODE)
    if node is None:
        return f"Node.js {wanted} or newer, which is not installed; see https://nodejs.org"
    if node < NODE:
        return f"Node.js {wanted} or newer, and this is {name_version(node)}"
    return None


def read_node_version() -> Version | None:
    try:
        said = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.match(r"v(\d+)\.(\d+)", said.stdout)
    return (int(found[1]), int(found[2])) if found else None


def name_version(version: Version) -> str:
    return ".".join(map(str, version))
