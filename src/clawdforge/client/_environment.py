"""What of the environment a server in the background was started with, so that a later command sees a change.

It keeps the variables of the command that started it: an agent that was installed since, or a key that was
exported since, is not there for it. Digests with a salt are kept, never the values.
"""

import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from clawdforge import __version__

NAME: Final = "server.environment"
VERSION: Final = "the version of clawdforge"
ENDINGS: Final = ("_KEY", "_TOKEN", "_SECRET", "_BASE_URL", "_PROXY")
OURS: Final = "CLAWDFORGE_"
NOT_ITS: Final = ("CLAWDFORGE_URL", "CLAWDFORGE_TOKEN", "CLAWDFORGE_ADMIN_TOKEN", "CLAWDFORGE_DATA_DIR")
"""They tell a command where to go, and a server nothing."""


TERMINALS: Final = ("XDG_", "VSCODE_", "SSH_", "TERM", "ITERM_", "KITTY_", "WEZTERM_")
"""What each window has of its own, however it ends."""


def matters(name: str) -> bool:
    if name in NOT_ITS or name.startswith(TERMINALS):
        return False
    return name == "PATH" or name.upper().endswith(ENDINGS) or name.startswith(OURS)


def remember(folder: Path, pid: int, env: Mapping[str, str]) -> None:
    """Note what this server was started with. Nothing depends on it, so nothing fails for it."""
    salt = secrets.token_hex(8)
    noted = {"pid": pid, "salt": salt, "variables": _digest(salt, env)}
    with contextlib.suppress(OSError):
        handle = os.open(folder / NAME, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(noted, file)


def was_started_here(folder: Path, pid: object) -> bool:
    """Whether a command started this server in the background."""
    noted = _read(folder)
    return noted is not None and noted["pid"] == pid


def find_changes(folder: Path, pid: object, env: Mapping[str, str]) -> list[str]:
    """The names of what has changed since the server was started. None of a server that others started."""
    noted = _read(folder)
    if noted is None or noted["pid"] != pid:
        return []
    then, now = noted["variables"], _digest(noted["salt"], env)
    return sorted(name for name in {*then, *now} if then.get(name) != now.get(name))


def _digest(salt: str, env: Mapping[str, str]) -> dict[str, str]:
    values = {name: value for name, value in env.items() if matters(name)} | {VERSION: __version__}
    return {
        name: hashlib.sha256(f"{salt}{value}".encode(errors="surrogateescape")).hexdigest()[:16]
        for name, value in values.items()
    }


def _read(folder: Path) -> dict[str, Any] | None:
    try:
        found = json.loads((folder / NAME).read_bytes())
    except (OSError, ValueError):
        return None
    whole = isinstance(found, dict) and {"pid", "salt", "variables"} <= set(found)
    return found if whole and isinstance(found["variables"], dict) else None
