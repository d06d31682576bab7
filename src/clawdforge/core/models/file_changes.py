"""What changed between two trees of a workspace: files with counts, or the diff of one."""

from dataclasses import dataclass

from clawdforge.wire.turn_changes import ChangeStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    path: str
    old_path: str | None = None  # of one that was renamed
    status: ChangeStatus
    added: int = 0
    removed: int = 0
    binary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChanges:
    files: tuple[FileChange, ...] = ()
    truncated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDiff:
    diff: str = ""
    binary: bool = False
    truncated: bool = False
