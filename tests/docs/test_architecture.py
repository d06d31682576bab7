"""The pictures of the architecture show the walls that the layout test holds, and the states of a turn."""

import re
from pathlib import Path

from clawdforge.wire.turn import MOVES
from tests.walls import LAYERS, ROOMS

PAGE = (Path(__file__).parents[2] / "docs" / "explain" / "architecture.md").read_text()
UNDRAWN = {
    "wire",
    "by_name",
    "bounds",
    "logs",
    "lifetime",
    "lacks",
    "listeners",
    "outbound",
    "machine",
    "folder",
    "folder_lock",
    "disk",
    "__main__",
    "",
}
UNDRAWN |= {"by_name"}
"""Parts that the page explains in words: everybody's, or of one small file."""

Arrow = tuple[str, str]


def pictures() -> list[str]:
    found: list[str] = re.findall(r"^```mermaid\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return found


def arrows(picture: str) -> set[Arrow]:
    """`a --> b & c` as (a, b) and (a, c)."""
    lines = re.findall(r"^ +([\w*\[\]]+) --> (.+)$", picture, re.MULTILINE)
    return {(source, target.strip()) for source, targets in lines for target in targets.split("&")}


def test_the_parts_are_drawn_as_they_may_import() -> None:
    allowed = {
        (part, other)
        for part, others in LAYERS.items()
        for other in others - {part} - UNDRAWN
        if part not in UNDRAWN
    }
    assert arrows(pictures()[1]) == allowed


def test_the_rooms_of_core_are_drawn_as_they_may_import() -> None:
    allowed = {
        (name.removeprefix("core."), other)
        for name, others in ROOMS.items()
        for other in others
        if name.startswith("core.")
    }
    assert arrows(pictures()[2]) == allowed


def test_the_states_of_a_turn_are_drawn_as_they_may_change() -> None:
    drawn = {arrow for arrow in arrows(pictures()[3]) if "[*]" not in arrow}
    assert drawn == {(state.value, after.value) for state, others in MOVES.items() for after in others}


def test_every_room_is_in_the_table() -> None:
    for room in (name for name in ROOMS if "." in name):
        part, name = room.split(".")
        row = rf"^\|.*`{part}/(?:{name}`|{name}/|\{{[^}}]*\b{name}\b)"
        assert re.search(row, PAGE, re.MULTILINE), f"{room} is not in the table of rooms"
