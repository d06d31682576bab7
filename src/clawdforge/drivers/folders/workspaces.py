"""The folders that agents work in: fresh ones that we make, or ones that a caller names inside the roots."""

import contextlib
import logging
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from clawdforge.core.models.workspaces import Workspace
from clawdforge.drivers.folders.homes import check_id
from clawdforge.drivers.folders.tree_removal import delete_tree
from clawdforge.drivers.processes.folder_identity import (
    FolderClosed,
    NotTheFolder,
    identify_workspace,
    is_same,
    open_workspace,
    read_identity,
    walk_up,
)
from clawdforge.drivers.processes.held_paths import PathChanged, PathMissing, open_real_path
from clawdforge.wire.errors import InvalidRequest, WorkspaceChanged, WorkspaceRefused

log = logging.getLogger(__name__)


class Workspaces:
    """All methods block for the time of a few system calls, `remove` for longer.

    `roots` are folders in which every app may choose a working directory.
    """

    def __init__(self, data_dir: Path, roots: Sequence[Path] = ()) -> None:
        self._data_dir = data_dir.resolve()
        self._folder = self._data_dir / "workspaces"
        self._roots = [root.expanduser().resolve() for root in roots]
        for root in self._roots:
            if not root.is_dir():
                log.warning("%s of CLAWDFORGE_WORKSPACE_ROOTS is not a folder; nobody can work there", root)

    def make(self, session_id: str) -> Workspace:
        path = self._folder / check_id(session_id)
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        return Workspace(path, self.identify(str(path), None))  # nobody asks what is above one of ours

    def check(self, path: str | Path, granted: Sequence[str] = (), *, anywhere: bool = False) -> Workspace:
        """A caller's folder with the links in its path resolved.

        `granted` are roots of the caller's own. With `anywhere`, no roots at all mean every folder. A path
        outside the roots is refused before anything else.
        """
        roots = [*self._roots, *map(Path, granted)]
        if not roots and not anywhere:
            raise WorkspaceRefused(
                "this app may name no working directory; leave it out to get a new folder, or ask the"
                " operator to grant one with `clawdforge app grant`"
            )
        real = _resolve(path)
        if roots:
            _need_root(Path(path), real, roots)
        if real.is_relative_to(self._data_dir) or self._data_dir.is_relative_to(real):
            raise WorkspaceRefused(
                "a working directory must not be inside the server's data folder, nor contain it"
            )
        if not os.path.isdir(real):  # noqa: PTH112 - Path.is_dir raises where a folder above may not be read
            raise WorkspaceRefused("this working directory does not exist; make it first")
        try:
            return self._look(real)
        except FolderClosed as error:
            raise WorkspaceRefused(str(error)) from error
        except NotTheFolder as error:
            raise WorkspaceRefused(
                "a working directory must not be inside the server's data folder, nor contain it, nor change"
                " while it is looked at"
            ) from error

    def own_path(self, name: str) -> str:
        return str(self._folder / check_id(name))

    def is_own(self, path: str) -> bool:
        """Whether this is the path of a folder that `make` makes, or of all of them; nothing is looked up."""
        named = Path(os.path.normpath(path))
        return self._folder in (named, named.parent)

    def check_root(self, path: str) -> str:
        """A folder that the operator grants to an app; InvalidRequest says why it cannot be one."""
        named = Path(path)
        if not named.is_absolute() or "\0" in path:
            raise InvalidRequest(f"{path!r} cannot be granted: give the absolute path of a folder")
        normal = Path(os.path.normpath(named))
        problem = _find_problem(normal)
        if problem is not None:
            raise InvalidRequest(f"{normal} cannot be granted: {problem}; name an existing folder itself")
        if normal.is_relative_to(self._data_dir):
            raise InvalidRequest(f"{normal} cannot be granted: it lies in the server's data folder")
        return str(normal)

    def identify(self, path: str, identity: str | None) -> str:
        """The identity of a session's folder. WorkspaceChanged unless it is the one that was recorded."""
        try:
            return identify_workspace(Path(path), identity, self._data_dir)
        except NotTheFolder as error:
            raise WorkspaceChanged(str(error)) from error

    def is_place(self, identity: str | None) -> bool:
        """Whether the data folder is the one of that identity, and not a copy."""
        return identity is not None and is_same(identity, self.place())

    def place(self) -> str:
        fd = os.open(self._data_dir, os.O_PATH | os.O_CLOEXEC)
        try:
            return read_identity(fd)
        finally:
            os.close(fd)

    def names(self) -> list[str]:
        """The ids of sessions for which there is a folder."""
        with contextlib.suppress(FileNotFoundError):
            return sorted(path.name for path in self._folder.iterdir())
        return []

    async def set_aside(self, session_id: str) -> bool:
        """Remove the folder if it is empty, as one is whose session was never stored. Others stay."""
        with contextlib.suppress(OSError):
            (self._folder / check_id(session_id)).rmdir()
            return True
        return False

    def remove(self, session_id: str) -> None:
        """Removes only folders that `make` made."""
        delete_tree(self._folder / check_id(session_id))

    def _look(self, path: Path) -> Workspace:
        fd = open_workspace(path, None, self._data_dir)
        try:
            own, *above = [read_identity(one) for one in walk_up(fd)]
        finally:
            os.close(fd)
        return Workspace(path, own, tuple(above))


def _resolve(path: str | Path) -> Path:
    named = Path(path)
    if not named.is_absolute() or "\0" in str(path):
        raise WorkspaceRefused("a working directory must be an absolute path")
    try:
        real = named.resolve()
        str(real).encode()
    except (OSError, RuntimeError, UnicodeEncodeError) as error:
        raise WorkspaceRefused from error
    return real


def _need_root(named: Path, real: Path, roots: Iterable[Path]) -> None:
    """Refuse what lies in none of the roots; a root that is gone or became a link is none."""
    broken = {root: problem for root in roots if (problem := _find_problem(root)) is not None}
    if any(real.is_relative_to(root) for root in roots if root not in broken):
        return
    for root, problem in broken.items():
        if named.is_relative_to(root):
            raise WorkspaceRefused(
                f"{root} was granted to this app, but {problem}; ask the operator to put it back, or to grant"
                " another folder"
            )
    raise WorkspaceRefused


def _find_problem(root: Path) -> str | None:
    """Why this is not a folder that can be worked in; None when it is."""
    try:
        os.close(open_real_path(root))
    except PathMissing:
        return "it does not exist"
    except PathChanged:
        return "it is a link, or there is one on the way to it"
    except OSError as error:
        return f"it cannot be opened ({error.strerror})"
    return None if root.is_dir() else "it is not a folder"
