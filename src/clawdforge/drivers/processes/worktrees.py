"""Finds the repository of a git worktree, which lies outside the folder that an agent works in.

The worktree names its repository in a file that the agent can write, so the repository has to name the
worktree as well, and no agent could write that without having been let in there.
"""

import os
import stat
from pathlib import Path
from typing import Final

MAX_BYTES: Final = 4096


def find_repository(workspace: Path) -> tuple[Path, ...]:
    """The `.git` folder of a worktree's repository; nothing for other folders, or where anything is odd."""
    pointer = workspace / ".git"
    word, _, named = _read_plain(pointer).partition(": ")
    entry = _join(workspace, named)
    if word != "gitdir" or not named or entry.parent.name != "worktrees":
        return ()
    repository = entry.parent.parent  # not what `commondir` says: that could be any folder
    try:
        is_real = entry.resolve(strict=True) == entry
    except OSError:
        return ()
    is_repository = (repository / "HEAD").is_file() and (repository / "objects").is_dir()
    is_mutual = _join(entry, _read_plain(entry / "gitdir")) == pointer
    return (repository,) if is_real and is_repository and is_mutual else ()


def _join(folder: Path, named: str) -> Path:
    """A path in one of git's files, which may be relative to the folder of that file."""
    return Path(os.path.normpath(folder / named))


def _read_plain(path: Path) -> str:
    """The text of a small plain file, without following a link or waiting for a pipe."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return ""
        return os.read(fd, MAX_BYTES).decode(errors="replace").strip()
    finally:
        os.close(fd)
