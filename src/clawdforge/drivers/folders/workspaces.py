"""The folders that agents work in: fresh ones that we make, or ones that a caller names inside the roots."""

import contextlib
from collections.abc import Sequence
from pathlib import Path

from clawdforge.drivers.folders.file_copy import delete_tree
from clawdforge.drivers.folders.homes import check_id
from clawdforge.wire.errors import WorkspaceRefused


class Workspaces:
    """All methods block for the time of a few system calls, `remove` for longer."""

    def __init__(self, data_dir: Path, roots: Sequence[Path] = ()) -> None:
        self._data_dir = data_dir.resolve()
        self._folder = self._data_dir / "workspaces"
        self._roots = [root.expanduser().resolve() for root in roots]

    def make(self, session_id: str) -> Path:
        path = self._folder / check_id(session_id)
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        return path

    def check(self, path: str | Path) -> Path:
        """A caller's path with its links resolved.

        A path outside the roots is refused before anything else.
        """
        if not self._roots:
            raise WorkspaceRefused("set CLAWDFORGE_WORKSPACE_ROOTS to allow working directories of your own")
        named = Path(path)
        if not named.is_absolute() or "\0" in str(path):
            raise WorkspaceRefused("a working directory must be an absolute path")
        try:
            real = named.resolve()
        except (OSError, RuntimeError) as error:
            raise WorkspaceRefused from error
        if not any(real.is_relative_to(root) for root in self._roots):
            raise WorkspaceRefused
        if real.is_relative_to(self._data_dir) or self._data_dir.is_relative_to(real):
            raise WorkspaceRefused(
                "a working directory must not be inside the server's data folder, nor contain it"
            )
        if not real.is_dir():
            raise WorkspaceRefused("this working directory does not exist; make it first")
        return real

    def names(self) -> list[str]:
        """The ids of sessions for which there is a folder."""
        with contextlib.suppress(FileNotFoundError):
            return sorted(path.name for path in self._folder.iterdir())
        return []

    async def discard(self, session_id: str) -> bool:
        """Remove the folder if it is empty, as one is whose session was never stored."""
        with contextlib.suppress(OSError):
            (self._folder / check_id(session_id)).rmdir()
            return True
        return False

    def remove(self, session_id: str) -> None:
        """Removes only folders that `make` made."""
        delete_tree(self._folder / check_id(session_id))
