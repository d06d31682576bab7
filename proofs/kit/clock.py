"""A wall clock of a server that is set while it runs."""

import time
from pathlib import Path


class Clock:
    """The server's: ahead of the machine's by what is written here, and set by writing it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ahead = 0
        self.latest = 0.0
        path.parent.mkdir(parents=True, exist_ok=True)
        self.move(0)

    def now(self) -> float:
        return time.time() + self.ahead

    def move(self, seconds: int) -> None:
        self.latest = max(self.latest, self.now())
        self.ahead += seconds
        with self.path.open("r+b" if self.path.exists() else "wb") as file:  # the server has it mapped
            file.write((self.ahead * 1_000_000).to_bytes(8, "little", signed=True))
        self.latest = max(self.latest, self.now())
