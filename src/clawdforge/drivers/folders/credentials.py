"""Credential files that all sessions share: each home links to the files in the operator's own home.

A token that is refreshed in one session must serve all of them, and an undo must not bring back a dead one.
An agent may refresh by replacing its link with a new file: then the newer content is moved to the operator's
home and the link is restored.
"""

import logging
import os
import secrets
import stat
from pathlib import Path

from clawdforge.drivers.folders.tree_walk import (
    CREATE,
    open_below,
    open_folder,
    open_folder_below,
    read_small_file,
)
from clawdforge.drivers.folders.tree_write import is_plain_path

log = logging.getLogger(__name__)
MAX_BYTES = 1 << 20


def shared_files(names: tuple[str, ...], operator_home: Path) -> tuple[Path, ...]:
    """Those that exist; agents must be able to write them.

    A file that is a link, or lies below one, is not shared: an agent that may write it could have made it
    lead to any secret of the server.
    """
    found = (_find_shared(operator_home, name) for name in names)
    return tuple(path for path in found if path is not None)


def _find_shared(operator_home: Path, name: str) -> Path | None:
    path = operator_home.resolve() / name
    if not is_plain_path(name):
        log.warning("%r is no plain path below a home, so agents do not share it; correct the entry", name)
        return None
    try:
        info = path.lstat()
        is_real = path.resolve(strict=True) == path
    except OSError:
        return None
    if stat.S_ISREG(info.st_mode) and is_real and info.st_nlink == 1:
        return path
    log.warning("%s is not a plain file of its own, so agents do not share it", path)
    return None


def link_files(home: Path, names: tuple[str, ...], operator_home: Path) -> None:
    """Make each file a link to the operator's.

    A file that the operator does not have is left to the session.
    """
    for name in names:
        shared = _find_shared(operator_home, name)
        if shared is not None:
            *folders, last = name.split("/")
            with open_folder_below(home, folders) as folder:
                _link_one(folder, last, shared)


def are_linked(home: Path, names: tuple[str, ...], operator_home: Path) -> bool:
    """Whether `link_files` would leave everything as it is. Changes nothing."""
    for name in names:
        path = operator_home.resolve() / name
        if not os.path.lexists(path):
            continue
        *folders, last = name.split("/")
        try:
            with open_folder(home) as root, open_below(root, folders) as folder:
                if os.readlink(last, dir_fd=folder) != str(path):
                    return False
        except OSError:
            return False
    return True


def _link_one(folder: int, name: str, shared: Path) -> None:
    try:
        info = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        os.symlink(shared, name, dir_fd=folder)
        return
    if stat.S_ISLNK(info.st_mode) and os.readlink(name, dir_fd=folder) == str(shared):
        return
    if stat.S_ISDIR(info.st_mode):
        return
    if stat.S_ISREG(info.st_mode) and 0 < info.st_size <= MAX_BYTES:
        _adopt(folder, name, info, shared)
    os.unlink(name, dir_fd=folder)
    os.symlink(shared, name, dir_fd=folder)


def _adopt(folder: int, name: str, info: os.stat_result, shared: Path) -> None:
    """Take over the agent's file if it is newer than the shared one."""
    if info.st_mtime_ns <= shared.stat().st_mtime_ns:
        return
    content = read_small_file(folder, name, MAX_BYTES + 1)
    if 0 < len(content) <= MAX_BYTES:
        replace_shared(shared, content)


def replace_shared(shared: Path, content: bytes) -> None:
    """Give the operator's file another content, all of it or nothing."""
    temporary = shared.with_name(f".{shared.name}.{secrets.token_hex(4)}")
    try:
        target = os.open(temporary, CREATE, 0o600)
        with os.fdopen(target, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(shared)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
