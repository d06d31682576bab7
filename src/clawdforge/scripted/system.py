"""Names, folders and variables without `os`, which takes 2 ms of each start; `posix` is built in."""

from __future__ import annotations

import posix


def variables() -> dict[str, str]:
    """The environment."""
    return {_read(name): _read(value) for name, value in posix.environ.items()}


def join(folder: str, path: str) -> str:
    """A path as it is meant in a folder; an absolute one stays."""
    return path if path.startswith("/") else f"{folder}/{path}"


def exists(path: str) -> bool:
    try:
        posix.stat(path)
    except OSError:
        return False
    return True


def make_folder(path: str) -> None:
    """With all above it, unless it is there."""
    try:
        posix.mkdir(path)
    except FileExistsError:
        return
    except FileNotFoundError:
        make_folder(path.rpartition("/")[0])
        make_folder(path)


def _read(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
