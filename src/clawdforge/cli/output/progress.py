"""A line on stderr while something takes long: on a terminal only, and gone when it is done."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias

from clawdforge.by_name import load
from clawdforge.cli.target.options import Target

Report: TypeAlias = Callable[[int, int | None], None]
BAR: Final = "clawdforge.cli.output.bar:show_bar"
"""Brings the libraries of a terminal, which a pipe does without."""


@contextmanager
def show_progress(target: Target, what: str) -> Iterator[Report]:
    """Yields a function to call with the bytes done so far and, if known, the total."""
    if target.quiet or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield _ignore
        return
    with load(BAR)(what) as report:
        yield report


def _ignore(_done: int, _whole: int | None) -> None:
    """There is no terminal to show it on."""
