"""Where a server on this machine leaves its address and its token: names and rules, no I/O."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ENV_URL: Final = "CLAWDFORGE_URL"
ENV_TOKEN: Final = "CLAWDFORGE_TOKEN"  # noqa: S105 - a variable's name, not a secret
ENV_DATA_DIR: Final = "CLAWDFORGE_DATA_DIR"

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8800

TOKEN_FILE: Final = "local.token"  # noqa: S105 - a file's name, not a secret
"""In the data folder, mode 0600: the token of the app `local`, as text."""

LOCK_FILE: Final = "server.lock"
"""In the data folder, held by the running server: JSON with `url` and `pid`."""

OPERATOR_SOCKET: Final = "operator.sock"
"""In the data folder, mode 0600: whoever can connect as the server's user, or as root, is its operator."""


def data_dir_default(env: Mapping[str, str]) -> Path:
    """`$CLAWDFORGE_DATA_DIR`, else `clawdforge` in the user's data folder (`$XDG_DATA_HOME`)."""
    named = env.get(ENV_DATA_DIR)
    if named:
        return Path(named).expanduser()
    base = env.get("XDG_DATA_HOME", "")
    # The XDG rules say that a relative path is to be ignored.
    if base.startswith("/"):
        return Path(base) / "clawdforge"
    home = env.get("HOME")
    return (Path(home) if home else Path.home()) / ".local" / "share" / "clawdforge"


def default_url() -> str:
    """Where a server listens when nobody says otherwise."""
    return f"http://{DEFAULT_HOST}:{DEFAULT_PORT}"


def config_file_default(env: Mapping[str, str]) -> Path:
    """The user's own settings: `clawdforge/config.toml` in `$XDG_CONFIG_HOME`, else in `~/.config`."""
    base = env.get("XDG_CONFIG_HOME", "")
    if base.startswith("/"):
        return Path(base) / "clawdforge" / "config.toml"
    home = env.get("HOME")
    return (Path(home) if home else Path.home()) / ".config" / "clawdforge" / "config.toml"


def project_key(folder: str) -> str:
    """What sessions in one folder have in common; `folder` is absolute and without symbolic links."""
    return hashlib.sha256(folder.encode("utf-8", "surrogateescape")).hexdigest()[:16]
