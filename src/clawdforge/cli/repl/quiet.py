"""A terminal that does not echo: keys pressed while lines are printed are kept, and shown once."""

import asyncio
import contextlib
import signal
import termios
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, Final, TextIO

from prompt_toolkit.input.vt100 import Vt100Input

INPUT_FLAGS: Final = 0
LOCAL_FLAGS: Final = 3
"""Where `tcgetattr` has them."""

ENDINGS: Final = (signal.SIGTERM, signal.SIGHUP)


class QuietInput(Vt100Input):
    """Keys from a terminal. The library lets it echo whenever something is printed above the line, so that a
    program started there can ask; only an editor is one, and says so with `hand_over`."""

    def __init__(self, stdin: TextIO) -> None:
        super().__init__(stdin)
        self._is_handed_over = False

    def cooked_mode(self) -> AbstractContextManager[None]:
        return super().cooked_mode() if self._is_handed_over else keep_quiet(self.fileno())

    @contextlib.contextmanager
    def hand_over(self) -> Iterator[None]:
        """Meanwhile another program has the terminal, as it knows it."""
        self._is_handed_over = True
        try:
            yield
        finally:
            self._is_handed_over = False


@contextlib.contextmanager
def keep_quiet(fd: int) -> Iterator[None]:
    """No echo and no line of the terminal's own until the block ends; Ctrl-C is a signal meanwhile."""
    try:
        before = termios.tcgetattr(fd)
    except termios.error:  # the terminal has gone
        yield
        return
    quiet: list[Any] = [*before]
    quiet[INPUT_FLAGS] &= ~termios.ICRNL  # Enter comes as it does while there is a line
    quiet[LOCAL_FLAGS] &= ~(termios.ECHO | termios.ICANON)
    quiet[LOCAL_FLAGS] |= termios.ISIG
    termios.tcsetattr(fd, termios.TCSANOW, quiet)
    try:
        yield
    finally:
        with contextlib.suppress(termios.error):
            termios.tcsetattr(fd, termios.TCSANOW, before)


@contextlib.contextmanager
def leave_on_signals() -> Iterator[None]:
    """Whoever ends the program or closes the window ends it in order, so that the terminal is as it was."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    seen: list[int] = []

    def leave(number: int) -> None:
        seen.append(number)
        if task is not None:
            task.cancel()

    for number in ENDINGS:
        loop.add_signal_handler(number, leave, number)
    try:
        yield
    finally:
        for number in ENDINGS:
            loop.remove_signal_handler(number)
        if seen:
            raise SystemExit(128 + seen[0])
