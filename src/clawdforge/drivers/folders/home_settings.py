"""Settings that an agent finds in its new home: copies of the operator's own files, and texts of its entry.

They are put where nothing is yet. From then on they are the session's: it may change them, an undo rewinds
them, and a later change of the operator's file is for new sessions.
"""

import contextlib
import os
from pathlib import Path

from clawdforge.core.model import AgentSpec
from clawdforge.drivers.folders.file_copy import folder_below
from clawdforge.drivers.folders.home_copies import is_below

MAX_BYTES = 1 << 20


def place(home: Path, agent: AgentSpec, operator_home: Path) -> None:
    """Blocking. The operator's own file goes before the entry's text."""
    for name in agent.copied:
        if is_below(name) and not _there(home, name):
            with contextlib.suppress(OSError):  # one that cannot be read is as one that is not there
                _put(home, name, _read(operator_home / name))
    for name, text in agent.settings.items():
        if is_below(name) and not _there(home, name):
            _put(home, name, text.encode())


def _there(home: Path, name: str) -> bool:
    return os.path.lexists(home / name)


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise OSError(f"{path} is too large for a settings file")
    return content


def _put(home: Path, name: str, content: bytes) -> None:
    """Through descriptors: the agent owns the home and may have put a link in the way."""
    *folders, last = name.split("/")
    with folder_below(home, folders) as folder:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(last, flags, 0o600, dir_fd=folder), "wb") as file:
            file.write(content)
