"""Finds the folders of /etc that programs of the system are linked to, and that hold nothing private.

Some distributions move the settings of a program to /etc and leave links to them: those of Java, Maven and R.
Without them the program does not start. Such a folder is shown to agents when everybody on the machine may
read all of it. It is looked at once, when the server starts.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from clawdforge.drivers.processes.mounts import Mount

PROGRAMS: Final = ((Path("/usr/lib"), 4), (Path("/usr/share"), 2))
"""Where such links lie, and how deep. Java's lie deepest: /usr/lib/jvm/JDK/conf/NAME."""

NEVER: Final = frozenset(
    {
        *("ssl", "pki", "ssh", "pam.d", "security", "sudoers.d", "alternatives", "apt", "cloud", "credstore"),
        *("docker", "kubernetes", "letsencrypt", "NetworkManager", "systemd", "wireguard", "wpa_supplicant"),
    }
)
"""Keys, passwords and services. What agents need of the first two is shown to them anyway."""

MAX_ENTRIES: Final = 50_000
MAX_SETTINGS: Final = 2000


def find_linked_settings(
    programs: Sequence[tuple[Path, int]] = PROGRAMS, etc: Path = Path("/etc")
) -> tuple[Mount, ...]:
    """Folders directly in /etc, as mounts."""
    names = {name for top, depth in programs for name in _list_linked(str(top), depth, f"{etc}/")}
    folders = (etc / name for name in sorted(names - NEVER))
    return tuple(Mount(path, "read-only", "the system's settings") for path in folders if _is_public(path))


def _list_linked(top: str, depth: int, etc: str) -> Iterator[str]:
    """The names in /etc that links below a folder lead through."""
    waiting, met = [(top, depth)], 0
    while waiting and met < MAX_ENTRIES:
        folder, left = waiting.pop()
        for entry in _scan(folder):
            met += 1
            if entry.is_symlink():
                target = os.path.normpath(Path(folder, _read_link(entry.path)))
                if target.startswith(etc):
                    yield target.removeprefix(etc).partition("/")[0]
            elif left > 1 and entry.is_dir(follow_symlinks=False):
                waiting.append((entry.path, left - 1))


def _is_public(folder: Path) -> bool:
    """Whether everybody may read all that lies in a folder, and it is small enough to be looked through."""
    if folder.is_symlink() or not folder.is_dir() or not _may_read(os.lstat(folder).st_mode):
        return False
    waiting, met = [str(folder)], 0
    while waiting:
        for entry in _scan(waiting.pop()):
            met += 1
            if entry.is_symlink():  # what it leads to is not shown by this
                continue
            if met > MAX_SETTINGS or not _may_read(entry.stat(follow_symlinks=False).st_mode):
                return False
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
    return True


def _may_read(mode: int) -> bool:
    """Whether it is a file that all may read, or a folder that all may look into."""
    return bool(mode & 0o004) if stat.S_ISREG(mode) else stat.S_ISDIR(mode) and mode & 0o005 == 0o005


def _scan(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _read_link(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115 -- for thousands of links, and pathlib is slower
    except OSError:
        return ""
