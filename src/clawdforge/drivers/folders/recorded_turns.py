"""What a session's snapshots say of the ends of turns: the names of trees, and which turns left nothing.

Most conversations never write a file. What they leave stands in one list: a line more in a file that is there
takes a twentieth of what a file for each turn does, after every turn. Each line begins anew and ends with a
dot, so that what a loss of power or a full disk has left of one is not taken for another turn.
"""

import contextlib
import os
import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

from clawdforge.drivers.folders.tree_walk import open_folder

EMPTY_TREE: Final = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
TREE: Final = re.compile(r"[0-9a-f]{40}")
MAX_TURNS: Final = 200
PRUNE_EVERY: Final = 16  # turns: to count what there is takes longer than to record an empty workspace
EMPTY_TURNS: Final = "empty"
ADD: Final = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC


def find_tree(folder: Path, turn_index: int) -> str | None:
    """The tree that was recorded at the end of a turn."""
    tree = read_tree_name(folder / "refs" / "turns" / str(turn_index))
    return EMPTY_TREE if tree is None and turn_index in read_empty_turns(folder) else tree


def list_recorded(folder: Path) -> list[int]:
    """The turns whose end was recorded."""
    return sorted({*list_turns(folder / "refs" / "turns"), *read_empty_turns(folder)})


def has_recorded(folder: Path) -> bool:
    """Whether the end of a turn was ever recorded: a loss of power may have taken what was."""
    return (folder / EMPTY_TURNS).exists() or (folder / "refs" / "turns").is_dir()


def has_files(place: str) -> bool:
    """Whether the workspace was ever other than empty at the end of a turn: then there is a repository."""
    return os.path.exists(f"{place}/HEAD")  # noqa: PTH110 -- after every turn, and far faster


def is_empty(workspace: str | Path) -> bool:
    with open_folder(workspace) as folder, os.scandir(folder) as entries:
        return all(entry.name == ".git" for entry in entries)


def note_empty_turn(place: str, turn_index: int) -> None:
    try:
        _add_empty_turn(place, turn_index)
    except FileNotFoundError:
        write_empty_turns(Path(place), {turn_index})
    if turn_index % PRUNE_EVERY == 0:
        turns = read_empty_turns(Path(place))
        write_empty_turns(Path(place), turns.difference(_beyond(turns)))


def _add_empty_turn(place: str, turn_index: int) -> None:
    fd = os.open(f"{place}/{EMPTY_TURNS}", ADD)
    try:
        os.write(fd, b"\n%d.\n" % turn_index)
    finally:
        os.close(fd)


def write_empty_turns(folder: Path, turns: Iterable[int]) -> None:
    """Exactly these, in the place of the list that is there."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = folder / f".new-{EMPTY_TURNS}"
    temporary.write_text("".join(f"{turn_index}.\n" for turn_index in sorted(turns)))
    temporary.replace(folder / EMPTY_TURNS)


def read_empty_turns(folder: Path) -> set[int]:
    try:
        lines = (folder / EMPTY_TURNS).read_bytes().split(b"\n")
    except FileNotFoundError:
        return set()
    return {int(line[:-1]) for line in lines if line[-1:] == b"." and line[:-1].isdigit()}


def read_tree_name(path: Path) -> str | None:
    """The name of a tree that is written in a file; None without it."""
    try:
        name = path.read_text().strip()
    except FileNotFoundError:
        return None
    return name if TREE.fullmatch(name) else None


def list_turns(folder: Path) -> list[int]:
    with contextlib.suppress(FileNotFoundError):
        return sorted(int(path.name) for path in folder.iterdir() if path.name.isdigit())
    return []


def remove_oldest(folder: Path) -> bool:
    """Keep the first and the newest turns of a folder; whether any went.

    By the first one, all that a session has changed can be told. A few at a time: the next prompt waits.
    """
    gone = _beyond(list_turns(folder))
    for turn_index in gone:
        (folder / str(turn_index)).unlink()
    return bool(gone)


def _beyond(turns: Collection[int]) -> list[int]:
    return sorted(turns)[1:-MAX_TURNS]
