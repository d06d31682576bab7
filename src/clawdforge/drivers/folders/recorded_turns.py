"""What a session's snapshots say of the ends of turns: the names of trees, and which turns left nothing.

Most conversations never write a file. What they leave stands in one list: a line more in a file that is there
takes a twentieth of what a file for each turn does, after every turn. Each line begins anew, whatever a loss
of power has left of the one before.
"""

import contextlib
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

EMPTY_TREE: Final = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
TREE: Final = re.compile(r"[0-9a-f]{40}")
EMPTY_TURNS: Final = "empty"
ADD: Final = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC


def find_tree(folder: Path, turn_index: int) -> str | None:
    """The tree that was recorded at the end of a turn."""
    tree = read_tree_name(folder / "refs" / "turns" / str(turn_index))
    return EMPTY_TREE if tree is None and turn_index in read_empty_turns(folder) else tree


def list_recorded(folder: Path) -> list[int]:
    """The turns whose end was recorded."""
    return sorted({*list_turns(folder / "refs" / "turns"), *read_empty_turns(folder)})


def add_empty_turn(place: str, turn_index: int) -> None:
    """FileNotFoundError where no turn is in the list yet: `write_empty_turns` makes it."""
    fd = os.open(f"{place}/{EMPTY_TURNS}", ADD)
    try:
        os.write(fd, b"\n%d\n" % turn_index)
    finally:
        os.close(fd)


def write_empty_turns(folder: Path, turns: Iterable[int]) -> None:
    """Exactly these, in the place of the list that is there."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = folder / f".new-{EMPTY_TURNS}"
    temporary.write_text("".join(f"{turn_index}\n" for turn_index in sorted(turns)))
    temporary.replace(folder / EMPTY_TURNS)


def read_empty_turns(folder: Path) -> set[int]:
    try:
        lines = (folder / EMPTY_TURNS).read_bytes().split(b"\n")
    except FileNotFoundError:
        return set()
    return {int(line) for line in lines if line.isdigit()}


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
