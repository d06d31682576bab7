"""What a terminal does with keys while lines are printed above the line, and how it is left."""

import asyncio
import os
import pty
import signal
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from clawdforge.cli.repl.quiet import LOCAL_FLAGS, QuietInput, keep_quiet, leave_on_signals

ECHOES = termios.ECHO | termios.ICANON


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Both ends of one: what a person types into, and what a program has."""
    outer, inner = pty.openpty()
    yield outer, inner
    os.close(outer)
    os.close(inner)


def flags(fd: int) -> int:
    found: int = termios.tcgetattr(fd)[LOCAL_FLAGS]
    return found


def test_nothing_is_echoed_and_everything_is_kept(terminal: tuple[int, int]) -> None:
    outer, inner = terminal
    before = termios.tcgetattr(inner)
    assert flags(inner) & ECHOES == ECHOES
    with keep_quiet(inner):
        os.write(outer, b"typed\x7f\x04early\r")
        os.write(inner, b"printed")
        assert os.read(inner, 100) == b"typed\x7f\x04early\r"  # also what would edit or end a line
        assert os.read(outer, 100) == b"printed"
        assert flags(inner) & termios.ISIG
    assert termios.tcgetattr(inner) == before


def test_it_is_as_it_was_after_a_failure(terminal: tuple[int, int]) -> None:
    before = termios.tcgetattr(terminal[1])
    with pytest.raises(ZeroDivisionError), keep_quiet(terminal[1]):
        _ = 1 / 0
    assert termios.tcgetattr(terminal[1]) == before


def test_what_is_no_terminal_is_left_alone(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file, keep_quiet(file.fileno()):
        file.write("x")


def test_only_an_editor_has_a_terminal_that_echoes(terminal: tuple[int, int]) -> None:
    inner = terminal[1]
    with os.fdopen(os.dup(inner)) as stdin:
        typed = QuietInput(stdin)
        with typed.raw_mode():
            with typed.cooked_mode():
                assert not flags(inner) & termios.ECHO
            with typed.hand_over(), typed.cooked_mode():
                assert flags(inner) & ECHOES == ECHOES
            with typed.cooked_mode():
                assert not flags(inner) & termios.ECHO


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_in_order(number: int, terminal: tuple[int, int]) -> None:
    before = termios.tcgetattr(terminal[1])

    async def wait() -> None:
        with keep_quiet(terminal[1]), leave_on_signals():
            os.kill(os.getpid(), number)
            await asyncio.Event().wait()

    with pytest.raises(SystemExit) as left:
        asyncio.run(asyncio.wait_for(wait(), 30))
    assert left.value.code == 128 + number
    assert termios.tcgetattr(terminal[1]) == before
