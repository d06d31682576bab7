"""A program on a pseudo-terminal: type into it, wait for what it shows."""

import codecs
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from fcntl import ioctl
from pathlib import Path
from typing import Any

import pyte

COLUMNS, ROWS = 100, 40
ENTER, ESC, CTRL_C, CTRL_D, CTRL_R, DOWN = "\r", "\x1b", "\x03", "\x04", "\x12", "\x1b[B"
CTRL_E, CTRL_X = "\x05", "\x18"

WHERE = "\x1b[6n"
PASTE_ON, PASTE_OFF = "\x1b[?2004h", "\x1b[?2004l"
"""What a line to type in writes when it comes and when it goes."""


class Terminal:
    """`clawdforge …` on a terminal of its own.

    `text` is the scrollback and the screen below it; `raw` is all that was ever written. With `tells`, it
    says where its cursor is when it is asked, as real ones do; only then there is a bar below the line.
    """

    def __init__(
        self,
        *args: str,
        env: Mapping[str, str],
        cwd: Path,
        tells: bool = False,
        size: tuple[int, int] = (COLUMNS, ROWS),
        command: tuple[str, ...] = (sys.executable, "-m", "clawdforge"),
    ) -> None:
        self._tells = tells
        self.columns, self.rows = size
        self._master, slave = pty.openpty()
        ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", self.rows, self.columns, 0, 0))
        self.process = subprocess.Popen(
            [*command, *args],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=cwd,
            env={**env, "TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "" if tells else "1"},
            start_new_session=True,
        )
        os.close(slave)
        self._readable = select.poll()  # a select would refuse descriptors from 1024 on
        self._readable.register(self._master, select.POLLIN)
        self._screen: Any = pyte.HistoryScreen(self.columns, self.rows, history=5000)
        self._stream: Any = pyte.Stream(self._screen)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.bytes = 0
        self.raw = ""

    @property
    def text(self) -> str:
        """What a person could scroll through now."""
        top = ["".join(row[at].data for at in range(self.columns)) for row in self._screen.history.top]
        return "\n".join(line.rstrip() for line in [*top, *self._screen.display]).rstrip()

    @property
    def screen(self) -> tuple[tuple[tuple[Any, ...], ...], tuple[int, int]]:
        """What is on the screen, row by row and cell by cell, and where its cursor is."""
        rows = (self._screen.buffer[at] for at in range(self.rows))
        cells = tuple(tuple(row[at] for at in range(self.columns)) for row in rows)
        return cells, (self._screen.cursor.x, self._screen.cursor.y)

    @property
    def colours(self) -> set[str]:
        rows = [*self._screen.history.top, *self._screen.buffer.values()]
        return {cell.fg for row in rows for cell in row.values()}

    @property
    def modes(self) -> list[Any]:
        """Of the terminal, as `tcgetattr` has them."""
        return termios.tcgetattr(self._master)

    def resize(self, columns: int, rows: int) -> None:
        """Another size, as of a window that is pulled. This terminal cuts rows and breaks none."""
        self.columns, self.rows = columns, rows
        self._screen.resize(rows, columns)
        ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def paste(self, text: str) -> None:
        self.type(f"\x1b[200~{text}\x1b[201~")

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def send(self, line: str) -> None:
        self.type(line + ENTER)

    def expect(self, pattern: str, seconds: float = 30.0) -> re.Match[str]:
        """Wait until this stands in the scrollback or on the screen."""
        end = time.monotonic() + seconds
        wanted = re.compile(pattern, re.DOTALL)
        while True:
            found = wanted.search(self.text)
            if found:
                return found
            left = end - time.monotonic()
            if left <= 0 or not self.read(min(left, 0.2)):
                raise AssertionError(f"{pattern!r} was not shown; this was:\n{self.text}")

    def expect_no_line(self, seconds: float = 30.0) -> None:
        """Wait until there is no line to type in: the last was sent, the next is not there yet."""
        end = time.monotonic() + seconds
        while self.raw.rfind(PASTE_OFF) <= self.raw.rfind(PASTE_ON):
            assert time.monotonic() < end, self.text
            self.read(0.2)

    def read(self, seconds: float) -> bool:
        """Take in what comes; False once there will be no more."""
        if not self._readable.poll(seconds * 1000):
            return True
        try:
            data = os.read(self._master, 65536)
        except OSError:  # the program has closed its side
            return False
        self.bytes += len(data)
        text = self._decoder.decode(data)
        self.raw += text
        self._stream.feed(text)
        if self._tells and WHERE in text:
            self.type(f"\x1b[{self._screen.cursor.y + 1};{self._screen.cursor.x + 1}R")
        return bool(data)

    def wait(self, seconds: float = 20.0) -> int:
        """Its exit code, once it has left."""
        end = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < end:
            self.read(0.05)
        code = self.process.poll()
        assert code is not None, f"it did not leave; the end of it:\n{self.text}"
        while self.read(0) and self._readable.poll(0):
            pass
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._master)
