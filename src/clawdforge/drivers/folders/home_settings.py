"""Writes an agent's settings into a new home: copies of the operator's files, and texts of the agent's entry.

Existing files are never overwritten. The settings then belong to the session: it may change them, an undo
rewinds them, and later changes to the operator's files only reach new sessions.
"""

import contextlib
import os
from pathlib import Path

from clawdforge.core.model import AgentSpec
from clawdforge.drivers.folders.file_copy import open_folder_below
from clawdforge.drivers.folders.home_copies import is_below

MAX_BYTES = 1 << 20


def write_settings(home: Path, agent: AgentSpec, operator_home: Path) -> None:
    """The operator's own file wins over the entry's text. Blocks."""
    for name in agent.copied:
        if is_below(name) and not _exists(home, name):
            with contextlib.suppress(OSError):  # an unreadable file counts as missing
                _write(home, name, _read(operator_home / name))
    for name, text in agent.settings.items():
        if is_below(name) and not _exists(home, name):
            _write(home, name, text.encode())


def _exists(home: Path, name: str) -> bool:
    return os.path.lexists(home / name)


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise OSError(f"{path} is too large for a settings file")
    return content


def _write(home: Path, name: str, content: bytes) -> None:
    """Goes through descriptors: the agent owns the home and may have put a link in the way."""
    *folders, last = name.split("/")
    with open_folder_below(home, folders) as folder:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(last, flags, 0o600, dir_fd=folder), "wb") as file:
            file.write(content)
