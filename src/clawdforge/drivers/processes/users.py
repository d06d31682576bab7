"""The users that agents run as where the server is root: one for each app, never given to another.

Which app has which number stands in a file of the data folder. It is written anew and renamed before the
first file belongs to the number, so a crash leaves either the old table or the new one. A number that an app
had once stays its own for ever.
"""

import grp
import hashlib
import json
import os
import pwd
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from clawdforge.disk import sync_folder
from clawdforge.wire.errors import AgentStartFailed

TABLE: Final = "agent-users.json"
AUTO_FIRST: Final = 0x70000000
"""Distributions, systemd and container engines give out numbers below this one."""

BLOCK: Final = 1024
BLOCKS: Final = 1 << 17
"""Two data folders on a machine are unlikely to have the same block of numbers."""


@dataclass(frozen=True, slots=True)
class User:
    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class RunsAs:
    """Whom an agent runs as, None for the server's own user, and the operator's files that it may write.

    `copies` are those files of which its user has a copy: where the agent sees it, and where it is kept.
    """

    user: User | None = None
    writable: tuple[Path, ...] = ()
    copies: tuple[tuple[Path, Path], ...] = field(default=())


AS_SERVER: Final = RunsAs()


@dataclass(frozen=True, slots=True)
class Numbers:
    """From which numbers new users are taken. With `is_auto`, an app keeps one that lies outside."""

    first: int
    last: int
    is_auto: bool = False

    @classmethod
    def parse(cls, setting: str, data_dir: Path) -> "Numbers":
        """Of `auto` or `FIRST-LAST`, which the settings have checked."""
        if setting == "auto":
            place = hashlib.sha256(os.fsencode(data_dir.resolve())).digest()
            first = AUTO_FIRST + int.from_bytes(place[:4], "big") % BLOCKS * BLOCK
            return cls(first, first + BLOCK - 1, is_auto=True)
        first_word, _, last_word = setting.partition("-")
        return cls(int(first_word), int(last_word))

    def __contains__(self, number: int) -> bool:
        return self.first <= number <= self.last

    def find_free(self, taken: set[int]) -> int | None:
        return next((number for number in range(self.first, self.last + 1) if number not in taken), None)


class UserTable:
    """The users of one data folder. Safe to use from threads; blocks for a write when an app is new."""

    def __init__(self, data_dir: Path, numbers: Numbers) -> None:
        self._path = data_dir / TABLE
        self._numbers = numbers
        self._lock = threading.Lock()
        self._known: dict[str, list[int]] | None = None

    def user_of(self, app: str) -> User:
        """The app's own. Raises AgentStartFailed if the file is damaged, or no number is left."""
        with self._lock:
            known = self._known = self._read() if self._known is None else self._known
            had = known.get(app, [])
            if had and (self._numbers.is_auto or had[-1] in self._numbers):
                return User(had[-1], had[-1])
            number = self._choose(had, known)
            changed = {**known, app: [*(one for one in had if one != number), number]}
            self._write(changed)
            self._known = changed
            return User(number, number)

    def _choose(self, had: list[int], known: Mapping[str, list[int]]) -> int:
        own = [number for number in had if number in self._numbers]
        taken = {number for numbers in known.values() for number in numbers} | _numbers_of_machine()
        number = own[-1] if own else self._numbers.find_free(taken)
        if number is None:
            raise AgentStartFailed(
                f"no user is left for this app: all from {self._numbers.first} to {self._numbers.last} belong"
                " to others; set CLAWDFORGE_AGENT_UIDS to a larger range, as FIRST-LAST"
            )
        return number

    def _read(self) -> dict[str, list[int]]:
        try:
            return _read_table(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise AgentStartFailed(
                f"{self._path}, which says as which user each app's agents run, cannot be read; put a copy of"
                " it back, or remove it and set CLAWDFORGE_AGENT_UIDS to numbers that were never used"
            ) from error

    def _write(self, apps: Mapping[str, list[int]]) -> None:
        temporary = self._path.with_name(f".{TABLE}.new")
        try:
            with temporary.open("wb") as file:
                file.write(json.dumps({"apps": apps}, indent=1).encode())
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self._path)
            sync_folder(self._path.parent)
        except OSError as error:
            raise AgentStartFailed(
                f"the user of a new app could not be noted: {error}; free some space, or make the data folder"
                " writable"
            ) from error


def name_user(user: User | None, home: Path) -> dict[Path, bytes]:
    """What an agent's /etc/passwd and /etc/group say of its user. Some programs end if they say nothing."""
    if user is None:
        return {}
    place = "/" if set(str(home)) & {":", "\n"} else str(home)
    group = f"agent:x:{user.gid}:\n".encode()
    person = f"agent:x:{user.uid}:{user.gid}:agent:".encode() + os.fsencode(place) + b":/bin/sh\n"
    return {Path("/etc/passwd"): person, Path("/etc/group"): group}


def _numbers_of_machine() -> set[int]:
    return {person.pw_uid for person in pwd.getpwall()} | {group.gr_gid for group in grp.getgrall()}


def _read_table(data: bytes) -> dict[str, list[int]]:
    """Raises ValueError, KeyError or TypeError for anything else."""
    found = dict(json.loads(data)["apps"])
    for numbers in found.values():
        if not numbers or not all(type(number) is int and number > 0 for number in numbers):
            raise ValueError("these are not users")
    return found
