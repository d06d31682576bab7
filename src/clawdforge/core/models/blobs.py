"""Files that every node can have: pieces of bytes by their digest, and what is published of a session."""

from dataclasses import dataclass
from enum import StrEnum

from clawdforge.wire.base import Micros


class BlobState(StrEnum):
    PENDING = "pending"  # it may be there, or in parts
    STORED = "stored"  # and nobody uses it yet, or any more
    USED = "used"
    DOOMED = "doomed"  # nobody may use it any more, and it is being removed


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobRow:
    """A piece of a file. The same bytes may lie at two places, if two nodes put them there at once."""

    place: str  # never given twice, so that what is removed is never what somebody has just put there
    app_name: str
    digest: str
    size: int
    state: BlobState
    touched_at: Micros  # made, or last used


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationRow:
    """The files of a session. Each tree is a list of digests: of its manifest."""

    session_id: str
    turn_index: int = 0  # after which the home was as it is here; 0: no home is published
    agent_session_id: str = ""
    home: tuple[str, ...] = ()
    workspace: tuple[str, ...] | None = None  # None where a caller named it, or it cannot be published
    """An empty tuple says that the workspace is empty; the end of a session's first turn writes that."""
    published_at: Micros


def owners_of(session_id: str) -> tuple[str, str]:
    """Who uses the pieces of a session's home, and of its workspace."""
    return session_id, f"{session_id}/workspace"
