"""What Landlock leaves an agent of files, processes and sockets, as words for the launcher.

Landlock is a wall that a process puts up around itself: no path, link or descriptor of a folder leads past
it, not even for root, and it needs no namespace. So it stands twice: inside of bubblewrap, in case that a
mount is wrong, and alone where bubblewrap does not work. It governs reading, writing, running, making and
removing files. It does not hide that a file is there, and does not keep its owner from changing its mode or
its times.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from clawdforge.drivers.processes import launcher
from clawdforge.drivers.processes.mounts import TMP, Mount

VERSION_FLAG: Final = 1
FILES_SINCE: Final = 2
"""Before that version, nothing could be moved from one folder to another."""

SCOPES_SINCE: Final = 6

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE = 1 << 4 | 1 << 5
_MAKE_DEVICES = 1 << 6 | 1 << 11
_MAKE = 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 12
_MOVE, _TRUNCATE, _CONTROL_DEVICES = 1 << 13, 1 << 14, 1 << 15

READ: Final = _EXECUTE | _READ_FILE | _READ_DIR
WRITE: Final = READ | _WRITE_FILE | _REMOVE | _MAKE | _MOVE | _TRUNCATE
USE_DEVICES: Final = WRITE | _CONTROL_DEVICES
ABSTRACT_SOCKETS_AND_SIGNALS: Final = 1 | 2

DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty")
"""Without a namespace no terminals and no shared memory: there are those of the operator among them."""


@dataclass(frozen=True, slots=True)
class Access:
    """The rights that an agent keeps, by path."""

    rights: Mapping[str, int]


def read_version() -> int:
    """Of the kernel's Landlock; 0 where there is none, or it is switched off."""
    try:
        return launcher.system_call(launcher.LANDLOCK_CREATE_RULESET, None, 0, VERSION_FLAG)
    except OSError:
        return 0


def build_words(version: int, access: Access | None, *, scopes: bool = True) -> list[str]:
    """What the launcher puts up. Without `access`, files are left alone."""
    known = _known_rights(version) if access is not None else 0
    scope = ABSTRACT_SOCKETS_AND_SIGNALS if scopes and version >= SCOPES_SINCE else 0
    if not known and not scope:
        return []
    rights = access.rights if access is not None else {}
    paths = [f"path={right & known}:{path}" for path, right in rights.items()]
    return [f"landlock={known}:{scope}", *paths]


def inside_namespace(mounts: Iterable[Mount]) -> Access:
    """Where mounts bound what is in sight: all of it may be read, and what is mounted writable changed."""
    rights = {"/": READ, "/proc": READ, "/dev": USE_DEVICES, str(TMP): WRITE}
    return Access(rights | {str(mount.path): WRITE for mount in mounts if mount.how == "writable"})


def without_namespace(mounts: Iterable[Mount], sources: Mapping[Path, str], hidden: Path) -> Access:
    """Where nothing is mounted: rights over the same places that would be.

    What an agent could replace is in `sources`, under the name of its descriptor. A right over a folder is
    one over all below, so none is given over a folder around the data folder.
    """
    rights = {"/proc": READ} | {f"/dev/{name}": USE_DEVICES for name in DEVICES}
    for mount in mounts:
        if mount.is_bind or mount.how == "copy":
            path = Path(mount.target or mount.path)
            held = sources.get(path) if mount.is_bind else None
            place = path if held else path.resolve()
            if not hidden.is_relative_to(place):
                rights[held or str(place)] = WRITE if mount.how == "writable" else READ
    return Access(rights)


def _known_rights(version: int) -> int:
    """All rights that this version can take away."""
    known = READ | _WRITE_FILE | _REMOVE | _MAKE | _MAKE_DEVICES | _MOVE
    if version < FILES_SINCE:
        return 0
    return known | (_TRUNCATE if version >= 3 else 0) | (_CONTROL_DEVICES if version >= 5 else 0)
