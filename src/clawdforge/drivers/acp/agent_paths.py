"""Paths that an agent names: measured before anybody works on them, and resolved in few steps.

`os.path.realpath` takes any number of links and of parts: a path of 400,000 parts keeps it busy for a minute,
and a chain of a thousand links ends it with a RecursionError.
"""

import errno
import os
from pathlib import Path
from typing import Final

from clawdforge.jsonrpc.rpc import INVALID_PARAMS, RpcError

MAX_PATH_BYTES: Final = 4096
MAX_NAME_BYTES: Final = 255
MAX_LINKS: Final = 40
"""These three are what the kernel takes itself."""

MAX_STEPS: Final = 4096
"""How many names are looked at for one path, those in the targets of its links included."""


def check_path(path: str) -> None:
    """Refuse what no file could be named. Takes no longer for a long path than for a short one."""
    if not path or "\0" in path[:MAX_PATH_BYTES]:
        raise RpcError(INVALID_PARAMS, "the path is empty or holds a null byte")
    if len(path) > MAX_PATH_BYTES or len(os.fsencode(path)) > MAX_PATH_BYTES:
        raise RpcError(INVALID_PARAMS, f"the path is longer than {MAX_PATH_BYTES} bytes")
    if any(len(os.fsencode(name)) > MAX_NAME_BYTES for name in path.split("/")):
        raise RpcError(INVALID_PARAMS, f"a name in the path is longer than {MAX_NAME_BYTES} bytes")


def resolve(path: Path) -> Path:
    """The path without links, as far as there is something; what does not exist is taken as it is written."""
    at, links = "", 0
    rest = list(reversed(str(path).split("/")))
    for _ in range(MAX_STEPS):
        if not rest:
            return Path(at or "/")
        name = rest.pop()
        if name in ("", "."):
            continue
        if name == "..":
            at = at.rpartition("/")[0]
            continue
        target = _read_link(f"{at}/{name}")
        if target is None:
            at = f"{at}/{name}"
            continue
        links += 1
        if links > MAX_LINKS:
            break
        rest.extend(reversed(target.split("/")))
        at = "" if target.startswith("/") else at
    raise RpcError(INVALID_PARAMS, f"the path goes through more than {MAX_LINKS} links, or through long ones")


def _read_link(path: str) -> str | None:
    """Where a link leads; None for everything else, and for what may not be looked at."""
    try:
        return os.readlink(path)  # noqa: PTH115 -- for each name of a path, and pathlib is slower
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise RpcError(INVALID_PARAMS, "the path goes through a circle of links") from error
        return None
