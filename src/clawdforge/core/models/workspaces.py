"""Workspaces as core passes them on: a folder that was looked at, and the area that a session works in."""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath


@dataclass(frozen=True, slots=True)
class Workspace:
    """A folder without any link in its path. `above` are the identities of the folders that contain it."""

    path: Path
    identity: str
    above: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Area:
    """A folder with everything above and below it: who works anywhere there can reach the same files."""

    path: str
    identities: tuple[str, ...] = ()

    @property
    def line(self) -> list[str]:
        """The folder and those that contain it."""
        path = PurePosixPath(self.path)
        return [str(path), *map(str, path.parents)]

    @property
    def inside(self) -> tuple[str, str]:
        """Two texts between which the paths of everything in the folder are sorted."""
        start = self.path.rstrip("/")
        return f"{start}/", f"{start}0"  # the character after a slash

    def overlaps(self, other: "Area") -> bool:
        return self.path in other.line or other.path in self.line
