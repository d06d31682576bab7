"""Secrets that nobody may read or change: planted in three places, searched for, and compared."""

import os
import stat
import tarfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

MOST = 1 << 20
MANY = 120
NAMES = ("canary.txt", "a.txt", "b.txt", *(f"f{number}.txt" for number in range(1, MANY + 1)))
"""The agent has files of all names but the first as well. A work that has many takes longer and can be raced
more often, and a write that goes astray shows."""


@dataclass
class Canaries:
    """`folders` by what they stand for."""

    folders: dict[str, Path]
    text: str = field(default_factory=lambda: f"CANARY-{uuid.uuid4().hex}")
    _before: dict[str, bytes] = field(default_factory=dict)

    def plant(self, user: int) -> None:
        for folder in self.folders.values():
            (folder / "d").mkdir(parents=True, exist_ok=True)
            for place in (folder, folder / "d"):
                for name in NAMES:
                    (place / name).write_text(self.text)
            for path in (folder, *folder.rglob("*")):
                os.chown(path, user, user)
        self._before = self._look()

    def find_changes(self) -> list[str]:
        """What is not as it was planted: changed, gone, or new."""
        now = self._look()
        return sorted(
            path for path in now.keys() | self._before.keys() if now.get(path) != self._before.get(path)
        )

    def _look(self) -> dict[str, bytes]:
        return {str(path): content for folder in self.folders.values() for path, content in read_tree(folder)}

    def find_in(self, *folders: Path) -> list[str]:
        """Files below these folders that tell the secret."""
        text = self.text.encode()
        return [str(path) for folder in folders for path, content in read_tree(folder) if text in content]

    def find_in_archive(self, archive: Path, session: str) -> list[str]:
        """Members of one session in a backup that tell it."""
        found = []
        with tarfile.open(archive) as tar:
            for member in tar:
                if session in member.name and member.isreg() and (file := tar.extractfile(member)):
                    found += [member.name] if self.text.encode() in file.read(MOST) else []
        return found


def read_tree(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Everything below a folder without following a link or waiting for a pipe; links by where they lead."""
    for here, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(here, name)
            try:
                info = path.lstat()
                if stat.S_ISLNK(info.st_mode):
                    yield path, b"-> " + os.fsencode(path.readlink())
                elif stat.S_ISREG(info.st_mode):
                    with path.open("rb") as file:
                        yield path, file.read(MOST)
                else:
                    yield path, b""
            except FileNotFoundError:
                continue
