"""Writes an agent's settings into a new home: copies of the operator's files, and texts of the agent's entry.

Existing files are never overwritten. The settings then belong to the session: it may change them, an undo
rewinds them, and later changes to the operator's files only reach new sessions.
"""

import contextlib
import logging
import os
from pathlib import Path

from clawdforge.core.models.agents import AgentSpec
from clawdforge.drivers.folders.tree_walk import (
    CREATE,
    give_to_owner,
    open_file,
    open_folder,
    open_folder_below,
)
from clawdforge.drivers.folders.tree_write import is_plain_path

log = logging.getLogger(__name__)
MAX_BYTES = 1 << 20


def write_settings(home: Path, agent: AgentSpec, operator_home: Path) -> None:
    """The operator's own file wins over the entry's text. Blocks."""
    for name in agent.copied:
        if _is_meant(name) and not _exists(home, name):
            with contextlib.suppress(OSError):  # an unreadable file counts as missing
                _write(home, name, _read(operator_home / name))
    for name, text in agent.settings.items():
        if _is_meant(name) and not _exists(home, name):
            _write(home, name, text.encode())


def _is_meant(name: str) -> bool:
    if is_plain_path(name):
        return True
    log.warning("%r is no plain path below a home, so no agent gets it; correct the agent's entry", name)
    return False


def _exists(home: Path, name: str) -> bool:
    """Whether the home has something of that name. Below a link there is nothing of the home."""
    *folders, last = name.split("/")
    with contextlib.ExitStack() as opened:
        here = opened.enter_context(open_folder(home))
        try:
            for part in folders:
                here = opened.enter_context(open_folder(part, here))
            os.stat(last, dir_fd=here, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return False
    return True


def _read(path: Path) -> bytes:
    """The operator may have links among these files, so they are followed."""
    with open_file(path.resolve()) as fd:
        content = os.read(fd, MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise OSError(f"{path} is too large for a settings file")
    return content


def _write(home: Path, name: str, content: bytes) -> None:
    """Goes through descriptors: the agent owns the home and may have put a link in the way."""
    *folders, last = name.split("/")
    with (
        open_folder_below(home, folders) as folder,
        os.fdopen(os.open(last, CREATE, 0o600, dir_fd=folder), "wb") as file,
    ):
        give_to_owner(file.fileno(), folder)
        file.write(content)
