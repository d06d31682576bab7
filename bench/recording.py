"""The picture of README: a real conversation whose server is killed in the middle of an answer.

    python -m bench.recording [FILE]

Everything on it was shown by the command line on a terminal. Only the time is not kept: waits are shortened,
and what comes too fast for an eye is slowed down.
"""

import json
import os
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from bench.svg import Frame, draw
from tests.cli.kit import environment
from tests.cli.terminal import CTRL_D, ENTER, Terminal

PICTURE: Final = Path(__file__).parents[1] / "docs" / "pictures" / "kill.svg"
TITLE: Final = "An answer streams, its server is killed with kill -9, and the conversation goes on"
SIZE: Final = (96, 24)
SHORTEST, LONGEST, AT_THE_END = 0.08, 1.2, 4.0
"""How long one screen is shown, in seconds."""

WAIT_SECS: Final = 60.0


class Recorder:
    """Types, waits, and keeps every screen that was different from the one before."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._seen: list[tuple[float, Frame]] = []

    def look(self) -> None:
        frame = Frame(*self._terminal.screen, secs=0)
        if not self._seen or self._seen[-1][1] != frame:
            self._seen.append((time.monotonic(), frame))

    def wait_for(self, words: str) -> None:
        """Until these stand on the screen, wherever its lines break."""
        end = time.monotonic() + WAIT_SECS
        while words not in " ".join(self._terminal.text.split()):
            assert time.monotonic() < end, f"{words!r} was not shown:\n{self._terminal.text}"
            self._terminal.read(0.02)
            self.look()

    def type(self, line: str) -> None:
        """A line as a person types it, and Enter."""
        for sign in line:
            self._terminal.type(sign)
            self._terminal.read(0.1)
            self.look()
        self._terminal.type(ENTER)

    def frames(self) -> list[Frame]:
        """What is shown for how long: at least as long as an eye needs, and never long enough to bore."""
        ends = [when for when, _ in self._seen[1:]]
        shown = [
            Frame(frame.rows, frame.cursor, min(max(end - when, SHORTEST), LONGEST))
            for (when, frame), end in zip(self._seen, ends, strict=False)
        ]
        last = self._seen[-1][1]
        return [*shown, Frame(last.rows, last.cursor, AT_THE_END)]


def record(folder: Path) -> list[Frame]:
    project, data = folder / "project", folder / "data"
    project.mkdir()
    terminal = Terminal(env=environment(data, folder), cwd=project, tells=True, size=SIZE)
    recorder = Recorder(terminal)
    try:
        terminal.expect("/help")  # the bar is there
        recorder.look()
        recorder.type("hello")
        recorder.wait_for("I need no key")
        terminal.type(f"!kill -9 {pid_of(data)}{ENTER}")  # at once: the answer takes a second
        recorder.wait_for("the server is back")
        recorder.wait_for("The answer so far is kept")
        recorder.wait_for("ask · /help")
        recorder.type("/retry")
        recorder.wait_for('"permission" or "help".')
        recorder.wait_for(" out · ")
        recorder.type("what did I say?")
        recorder.wait_for("1 hello")
        terminal.type(CTRL_D)
        return recorder.frames()
    finally:
        terminal.close()
        with suppress(ProcessLookupError):
            os.kill(pid_of(data), signal.SIGTERM)


def pid_of(data: Path) -> int:
    return int(json.loads((data / "server.lock").read_text())["pid"])


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE
    with tempfile.TemporaryDirectory(prefix="cf-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        target.write_text(draw(record(Path(folder)), TITLE), encoding="utf-8")
    print(f"{target}: {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
