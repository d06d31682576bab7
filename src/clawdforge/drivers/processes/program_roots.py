"""Which folder belongs to a program, and which folders are too wide to be shown because of one."""

# ruff: noqa: PTH112, PTH113 - see ProgramRoots

from collections.abc import Iterator
from os.path import isdir, isfile
from pathlib import Path
from typing import Final

from clawdforge.drivers.processes.mounts import ETC_FOLDERS, SYSTEM, is_below

ALWAYS: Final = tuple(f"{folder}/" for folder in (*SYSTEM, *ETC_FOLDERS))
BIN: Final = ("bin", "sbin")
SHIMS: Final = "shims"
BESIDE_BIN: Final = ("lib", "lib64", "libexec", "share")
MANAGERS: Final = (".volta", ".bun", ".deno", ".pyenv", ".asdf", ".nodenv", ".rbenv", ".sdkman")
"""Folders of programs that choose and run other programs, and keep these beside themselves."""

CROWDED: Final = (
    *(".local", ".config", ".cache", ".ssh", ".gnupg", ".aws", ".kube", ".docker", ".cargo", ".mozilla"),
    *(".local/bin", ".local/lib", ".local/share", ".local/state"),
)
"""Folders of a home that belong to many programs, or hold secrets: never shown as a whole."""

SHARED: Final = ("", "/home", "/var", "/mnt", "/media", "/run")
"""A folder in one of these holds much more than one program."""


class ProgramRoots:
    """Looks at folders of this machine; knows which are the operator's home and the data folder.

    Paths are texts here: this is done at each start of an agent, and pathlib is slower.
    """

    def __init__(self, operator_home: Path, data_dir: Path) -> None:
        self._home = str(operator_home)
        self._data_dir = str(data_dir)

    def find(self, place: Path) -> Path | None:
        """The folder that a program's files lie in; None where it stands alone, or belongs to the system."""
        found = None if is_system(place) else next(self._list_candidates(str(place)), None)
        return None if found is None else Path(found)

    def is_wide(self, folder: str) -> bool:
        """Whether a folder holds much more than one program: the top of the tree, a home, the data folder."""
        above, _, name = folder.rpartition("/")
        if above in SHARED or is_below(folder, "/etc"):
            return True
        if is_below(self._home, folder) or is_below(self._data_dir, folder):
            return True
        return name in CROWDED or f"{above.rpartition('/')[2]}/{name}" in CROWDED

    def touches_data(self, path: Path) -> bool:
        """Whether a path lies in the data folder, or holds it."""
        return is_below(self._data_dir, str(path)) or is_below(str(path), self._data_dir)

    def _list_candidates(self, place: str) -> Iterator[str]:
        """The best first: an environment, packages of Node, a prefix with bin and lib, a manager's folder."""
        above = [folder for folder in _list_parents(place) if not self.is_wide(folder)]
        yield from (folder for folder in above if isfile(f"{folder}/pyvenv.cfg"))
        yield from (folder for folder in reversed(above) if folder.endswith("/node_modules"))
        parent, _, _ = place.rpartition("/")
        prefix, _, kind = parent.rpartition("/")
        if prefix in above:
            is_prefix = any(isdir(f"{prefix}/{name}") for name in BESIDE_BIN)
            if kind == SHIMS or (kind in BIN and is_prefix):
                yield prefix
        for folder in above:
            if folder.rpartition("/")[2] in MANAGERS or isfile(f"{folder}/package.json"):
                yield folder
        if parent in above and kind not in BIN:
            yield parent


def _list_parents(path: str) -> list[str]:
    """The folders above, the nearest first, without the root."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(len(parts) - 1, 1, -1)]


def is_system(path: Path) -> bool:
    """Whether every agent sees it."""
    return f"{path}/".startswith(ALWAYS)
