"""What git prints about two trees, read into files with counts, or cut into the diff of one file."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from clawdforge.core.models.file_changes import FileChange, FileChanges, FileDiff
from clawdforge.wire.turn_changes import ChangeStatus

MAX_FILES: Final = 2000
MAX_LIST: Final = 8 << 20
MAX_DIFF: Final = 1 << 20
COMPARE: Final = ("diff-tree", "-r", "-z", "-M", "-l400", "--no-ext-diff", "--no-textconv")
SHOW: Final = ("diff-tree", "-r", "-p", "-M", "-l400", "--no-color", "--no-ext-diff", "--no-textconv")
RAW: Final = re.compile(rb":[0-7]{6} [0-7]{6} [0-9a-f]+ [0-9a-f]+ ([A-Z])[0-9]*")
COUNTS: Final = re.compile(rb"(-|[0-9]+)\t(-|[0-9]+)\t(.*)", re.DOTALL)
STATUS: Final = {b"A": ChangeStatus.ADDED, b"D": ChangeStatus.DELETED, b"R": ChangeStatus.RENAMED}


@dataclass(frozen=True, slots=True)
class Pair:
    """One file in both trees, by its names as they are on the disk."""

    status: ChangeStatus
    path: bytes
    old_path: bytes | None = None

    def name(self) -> str:
        return show_name(self.path)


def show_name(path: bytes) -> str:
    """As text; a byte that is not UTF-8 becomes `\\xNN`."""
    return path.decode("utf-8", "backslashreplace")


def read_changes(printed: bytes) -> FileChanges:
    """What `--raw --numstat -z` prints. What was cut off, or is too much, is said to be missing."""
    is_cut = len(printed) > MAX_LIST
    parts = _split(printed)
    pairs = list(_read_pairs(parts))
    counts = dict(_read_counts(parts))
    files = []
    for pair in pairs[:MAX_FILES]:
        old = None if pair.old_path is None else show_name(pair.old_path)
        change = FileChange(path=pair.name(), old_path=old, status=pair.status)
        found = counts.get(pair.path)
        is_cut = is_cut or found is None
        if found is not None:
            added, removed = found
            binary = added is None or removed is None
            change = replace(change, added=added or 0, removed=removed or 0, binary=binary)
        files.append(change)
    return FileChanges(files=tuple(files), truncated=is_cut or len(pairs) > MAX_FILES)


def find_pair(printed: bytes, path: str) -> Pair | None:
    """The file of that name in what `--raw -z` prints; one that is really called so comes first."""
    found = [pair for pair in _read_pairs(_split(printed)) if pair.name() == path]
    exact = path.encode("utf-8", "replace")
    return next((pair for pair in found if pair.path == exact), found[0] if found else None)


def name_paths(pair: Pair) -> list[str]:
    """Its names for git, each as it is written, without what lies below it where it is a folder."""
    names = [pair.path] if pair.old_path is None else [pair.old_path, pair.path]
    texts = [os.fsdecode(name) for name in names]
    return [f":(literal){text}" for text in texts] + [f":(exclude,literal){text}/" for text in texts]


def read_diff(printed: bytes) -> FileDiff:
    """A unified diff, cut after its last whole line that fits."""
    truncated = len(printed) > MAX_DIFF
    kept = printed[: printed.rfind(b"\n", 0, MAX_DIFF) + 1] if truncated else printed
    head, hunk, _ = kept.partition(b"\n@@ ")
    if not hunk:
        return FileDiff(binary=b"\nBinary files " in head, truncated=truncated)
    return FileDiff(diff=kept.decode("utf-8", "replace"), truncated=truncated)


def _split(printed: bytes) -> list[bytes]:
    """What is between NULs, the next one last; what follows the last NUL was cut off."""
    return printed.split(b"\0")[-2::-1]


def _read_pairs(parts: list[bytes]) -> Iterator[Pair]:
    """Take them from the end of `parts`, up to what is no pair."""
    while parts and (raw := RAW.fullmatch(parts[-1])):
        parts.pop()
        status = STATUS.get(raw[1], ChangeStatus.MODIFIED)
        count = 2 if status is ChangeStatus.RENAMED else 1
        if len(parts) < count:
            return
        names = [parts.pop() for _ in range(count)]
        yield Pair(status, names[-1], names[0] if count == 2 else None)


def _read_counts(parts: list[bytes]) -> Iterator[tuple[bytes, tuple[int | None, int | None]]]:
    while parts and (row := COUNTS.fullmatch(parts.pop())):
        path = row[3]
        if not path:  # it was renamed: both names follow
            if len(parts) < 2:
                return
            parts.pop()
            path = parts.pop()
        yield path, (_number(row[1]), _number(row[2]))


def _number(text: bytes) -> int | None:
    return None if text == b"-" else int(text)
