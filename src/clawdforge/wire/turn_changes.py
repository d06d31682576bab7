"""What a turn changed in the files of its workspace: `GET /sessions/{id}/turns/{n}/changes`."""

from enum import StrEnum
from typing import Literal, TypeAlias

from pydantic import Field

from clawdforge.wire.base import Reply


class ChangeStatus(StrEnum):
    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"
    RENAMED = "renamed"


class ChangeBase(StrEnum):
    """What a turn is compared with: the files before it, or those before the first turn."""

    TURN = "turn"
    FIRST = "first"


ChangeBaseWord: TypeAlias = Literal["turn", "first"]


class ChangedFile(Reply):
    """`old_path` is that of a renamed file. In a name, a byte that is not UTF-8 is written as `\\xNN`."""

    path: str
    old_path: str | None = None
    status: ChangeStatus
    added: int = 0
    removed: int = 0
    binary: bool = False


class TurnChanges(Reply):
    """The files that changed. `base_turn` is the turn after which the base was recorded, 0 before the first.

    It is null where the base is what an undo or redo made of the files, or what a fork began with. `reason`
    says why nothing is known; `truncated` that there are more files, or that lines were not counted.
    """

    ok: bool = True
    session_id: str
    turn_index: int
    base: ChangeBase
    base_turn: int | None = None
    files: list[ChangedFile] = Field(default_factory=list)
    truncated: bool = False
    reason: str | None = None


class TurnDiff(Reply):
    """With `path`: the unified diff of one file; empty for a binary one, or if only its name changed."""

    ok: bool = True
    session_id: str
    turn_index: int
    base: ChangeBase
    base_turn: int | None = None
    path: str
    diff: str
    binary: bool = False
    truncated: bool = False
    reason: str | None = None
