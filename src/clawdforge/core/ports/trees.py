"""What core asks of the trees that were recorded of workspaces: which there are, and how they differ."""

from typing import Protocol

from clawdforge.core.models.file_changes import FileChanges, FileDiff


class TreesUnread(Exception):
    """Two trees cannot be compared; the message says why."""


class Trees(Protocol):
    """They are read where nothing else is in sight, and never changed. A tree is known by its name."""

    async def find(self, session_id: str, turn_index: int) -> str | None:
        """The one after a turn (0: before the first)."""
        ...

    async def find_oldest(self, session_id: str) -> tuple[int, str] | None:
        """The first that is still kept, with its turn."""
        ...

    async def find_begun(self, session_id: str) -> str | None:
        """What a fork found when it was made, if that is known."""
        ...

    async def explain_missing(self, session_id: str, turn_index: int) -> str | None:
        """Why there is none after that turn, if somebody knows."""
        ...

    async def compare(self, app: str, session_id: str, old: str, new: str) -> FileChanges:
        """The files that differ. Raises TreesUnread."""
        ...

    async def diff(self, app: str, session_id: str, old: str, new: str, path: str) -> FileDiff | None:
        """How one file differs, by its name in `compare`; None if it does not. Raises TreesUnread."""
        ...
