"""What each start finds out about this machine, found once, for servers whose start is not what is tested.

A start tries every wall in processes of its own, for a sixth of a second of a processor. What it then finds
is the same for every server with these programs and folders; one that has others tries for itself.
"""

import os
from dataclasses import dataclass, replace
from typing import Final, Self
from unittest import mock

from clawdforge.drivers.processes import containment, helpers, user_wall
from clawdforge.drivers.processes.containment import Containment, Level
from clawdforge.drivers.processes.survivors import Tag
from clawdforge.drivers.processes.users import AUTO_FIRST, User
from clawdforge.drivers.processes.walls import Walls, find_walls

FOUND_BY: Final = ("PATH", "TMPDIR", "TMP", "TEMP")
"""Where bwrap is looked for, and where it is tried."""

HOME: Final = "HOME"
"""What of Python lies in it, agents do not see as a whole."""


@dataclass(frozen=True)
class Known:
    """What was found in the environment of `place`."""

    place: tuple[str | None, ...]
    home: str | None
    level: Containment
    walls: Walls
    has_users: bool
    help: bytes

    @classmethod
    def find(cls) -> Self:
        level = containment.probe("auto")
        walls = find_walls()
        bwrap = level.bwrap
        return cls(
            place=_place(),
            home=os.environ.get(HOME),
            level=level,
            walls=walls,
            has_users=bwrap is not None and _has_users(level, walls),
            help=b"" if bwrap is None else helpers._read_help(bwrap),  # noqa: SLF001 - what a start calls
        )

    def tell(self) -> None:
        """In a new server, where it would find the same."""
        if _place() != self.place or not self._sees_the_same():
            return
        probe, attempt, read_help = containment.probe, user_wall._try, helpers._read_help  # noqa: SLF001

        def probed(level: Level, *, bwrap: str = "bwrap", tag: Tag | None = None) -> Containment:
            same = (level, bwrap) == ("auto", "bwrap")
            return self.level if same else probe(level, bwrap=bwrap, tag=tag)

        def tried(found: Containment, user: User, tag: Tag | None) -> str | None:
            same = self.has_users and found.active == self.level.active and user.uid >= AUTO_FIRST
            return None if same else attempt(found, user, tag)

        def told(bwrap: str) -> bytes:
            return self.help if bwrap == self.level.bwrap else read_help(bwrap)

        mock.patch.object(containment, "probe", probed).start()
        mock.patch.object(containment, "find_walls", return_value=self.walls).start()
        mock.patch.object(user_wall, "_try", tried).start()
        mock.patch.object(helpers, "_read_help", told).start()

    def _sees_the_same(self) -> bool:
        same = os.environ.get(HOME) == self.home
        return same or containment._plan_base() == self.level.base  # noqa: SLF001 - what a start calls


def _has_users(level: Containment, walls: Walls) -> bool:
    if os.geteuid() != 0 or level.active not in containment.NAMESPACES:
        return False
    return user_wall._try(replace(level, walls=walls), User(AUTO_FIRST, AUTO_FIRST), None) is None  # noqa: SLF001 - what a start calls


def _place() -> tuple[str | None, ...]:
    return tuple(os.environ.get(name) for name in FOUND_BY)
