"""What core asks of files that travel between nodes: trees in pieces, taken apart and put together again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from clawdforge.core.models.rows import SessionRow
from clawdforge.core.models.workspaces import Workspace
from clawdforge.core.ports.blobs import BlobPlaces


class Piece(NamedTuple):
    """Some bytes of a file, and their SHA-256 in hexadecimal digits."""

    digest: str
    data: bytes


class NotStill(Exception):
    """The tree changed while it was read, so there is no moment in which it was as it was read."""


class TooMuch(Exception):
    """The tree cannot be published; the message says why."""


class TreeReading(Protocol):
    """A tree that is being read. Its methods block."""

    manifest: tuple[str, ...]
    """At the end: the digests of the pieces that describe it."""
    digests: frozenset[str]
    """At the end: those of all its pieces, also of what was known from the last time and not read."""

    def read(self) -> Sequence[Piece]:
        """The next pieces; none at the end. Raises NotStill, TooMuch and OSError."""
        ...

    def close(self) -> None: ...


class HomeReading(TreeReading, Protocol):
    turn_index: int
    agent_session_id: str


class TreeWriting(Protocol):
    """A tree that is being written. Its methods block."""

    def find_wanted(self) -> Sequence[str]:
        """The digests of the pieces that come next; none at the end."""
        ...

    def give(self, pieces: Mapping[str, bytes]) -> None:
        """What was wanted. Raises OSError, and ValueError for what cannot be a part of the tree."""
        ...

    def close(self) -> None:
        """Throw away what was not put in its place."""
        ...


class SharedFiles(Protocol):
    """The files of sessions as other nodes can have them."""

    def read_home(self, session_id: str) -> HomeReading | None:
        """Its newest copy; None where there is none. Blocks."""
        ...

    def forget(self, session_id: str) -> None:
        """Read all of it anew the next time: what was sent before may be gone."""
        ...

    def read_workspace(self, session: SessionRow) -> TreeReading:
        """One of our own, as it is now. Blocks."""
        ...

    def is_empty(self, session: SessionRow) -> bool:
        """Whether there is nothing in a workspace of our own, as far as can be seen. Blocks."""
        ...

    def write_home(self, session_id: str, manifest: bytes) -> TreeWriting: ...

    def write_workspace(self, session_id: str, manifest: bytes) -> TreeWriting: ...

    async def place_home(
        self, session_id: str, writing: TreeWriting, turn_index: int, agent_session_id: str
    ) -> None:
        """What was written becomes the home, and the copy of that turn."""
        ...

    def workspace_path(self, session_id: str) -> str:
        """Where a workspace of the session's own would lie."""
        ...

    async def place_workspace(
        self, session_id: str, writing: TreeWriting, *, is_shared: bool = False
    ) -> Workspace:
        """What was written becomes the session's workspace, in the place of an older one; beside it, where
        that `is_shared` by another session."""
        ...

    async def make_workspace(self, session_id: str) -> Workspace:
        """An empty one."""
        ...


@dataclass(frozen=True, slots=True)
class Sharing:
    """Files that travel, and where their pieces are put."""

    files: SharedFiles
    places: BlobPlaces
