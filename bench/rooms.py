"""Rooms, arrows and floors of each package: `python -m bench.rooms [SOURCE]`.

How many files a package has and how many imports of one by another, how many files stand on each other in the
longest chain, and in how many rooms they stand, with the imports of one room by another.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.layout import Module, imports, room_of
from tests.walls import ROOT

SOURCE: Final = Path(__file__).parent.parent / "src"
PACKAGES: Final = ("core", "stores", "drivers", "cli", "http")
Arrows = Mapping[str, frozenset[str]]


def main() -> None:
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE
    modules = [Module.read(path, source) for path in sorted((source / ROOT).rglob("*.py"))]
    print(f"{'':10}{'files':>7}{'arrows':>8}{'floors':>8}{'rooms':>9}{'arrows':>8}")
    for package in PACKAGES:
        files = arrows_of([module for module in modules if module.part == package])
        rooms = between_rooms(files)
        inside = f"{len(files):7}{count(files):8}{count_floors(files):8}"
        print(f"{package:10}{inside}{len(rooms):9}{count(rooms):8}")


def arrows_of(modules: list[Module]) -> Arrows:
    """Which of them each imports. A file that only says what its folder is counts if somebody imports it."""
    names = {module.name for module in modules}
    found = {}
    for module in modules:
        wanted = set()
        for one in imports(module):
            inner = [f"{one.target}.{name}" for name in one.names]
            wanted |= {name if name in names else one.target for name in inner} or {one.target}
        found[module.name] = frozenset(wanted & names - {module.name})
    used = frozenset[str]().union(*found.values())
    empty = {module.name for module in modules if len(module.tree.body) < 2} - used
    return {name: targets for name, targets in found.items() if name not in empty}


def between_rooms(files: Arrows) -> Arrows:
    found: dict[str, frozenset[str]] = {}
    for name, targets in files.items():
        room = room_of(name)
        found[room] = found.get(room, frozenset()) | {room_of(target) for target in targets} - {room}
    return found


def count(arrows: Arrows) -> int:
    return sum(map(len, arrows.values()))


def count_floors(arrows: Arrows) -> int:
    """The longest chain. There are no circles: `test_layout.py` sees to that."""
    heights = dict.fromkeys(arrows, 1)
    for _ in arrows:
        higher = {
            name: max((heights[target] + 1 for target in targets), default=1)
            for name, targets in arrows.items()
        }
        if higher == heights:
            break
        heights = higher
    return max(heights.values(), default=0)


if __name__ == "__main__":
    main()
