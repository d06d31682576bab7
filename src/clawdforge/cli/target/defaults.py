"""What new sessions of the command line are made with when no flag says it: variables and `[cli]` tables."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from clawdforge.cli.failures import Exit, Failure
from clawdforge.wire.local import config_file_default

PREFIX: Final = "CLAWDFORGE_CLI_"
PROJECT_FILE: Final = "clawdforge.toml"
KEYS: Final = ("agent", "persona", "model", "permission_mode")
NOT_FOR_PROJECTS: Final = frozenset({"permission_mode"})
"""A folder that somebody cloned must not decide what its agent may do."""


def read_defaults(env: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Key → value of what holds. Rising priority: the user's file, the project's file, variables."""
    return {key: value for key, (value, _) in read_origins(env, folder).items()}


def read_origins(env: Mapping[str, str], folder: Path) -> dict[str, tuple[str, str]]:
    """The same with where each value was said."""
    found: dict[str, tuple[str, str]] = {}
    for path, refused in ((config_file_default(env), frozenset()), (folder / PROJECT_FILE, NOT_FOR_PROJECTS)):
        for key, value in _read_table(path).items():
            if key not in refused:
                found[key] = (value, str(path))
    for key in KEYS:
        name = PREFIX + key.upper()
        if env.get(name):
            found[key] = (env[name], name)
    return found


def _read_table(path: Path) -> dict[str, str]:
    try:
        text = path.read_bytes().decode()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"cannot read {path}: {error}", Exit.USAGE) from None
    try:
        table: Any = tomllib.loads(text).get("cli", {})
    except tomllib.TOMLDecodeError as error:
        raise Failure(f"{path} is not valid TOML: {error}", Exit.USAGE) from None
    if not isinstance(table, dict) or not all(isinstance(value, str) for value in table.values()):
        raise Failure(f'{path}: write [cli] as a table of texts, such as agent = "claude"', Exit.USAGE)
    unknown = sorted(set(table) - set(KEYS))
    if unknown:
        raise Failure(f"{path}: unknown key {unknown[0]!r} in [cli]; known are {', '.join(KEYS)}", Exit.USAGE)
    return table


def options_for_new_session(folder: Path, flags: Mapping[str, str | None]) -> dict[str, str]:
    """What a new session is made with: flags first. A named agent leaves a persona from elsewhere out."""
    found = read_defaults(os.environ, folder)
    if flags.get("agent"):
        found.pop("persona", None)
    if flags.get("persona"):
        found.pop("agent", None)
    return {**found, **{key: value for key, value in flags.items() if value}}
