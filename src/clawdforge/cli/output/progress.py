"""A line on stderr while something takes long: on a terminal only, and gone when it is done."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias

from clawdforge.cli.lazy import load
from clawdforge.cli.target.options import Target

Told: TypeAlias = Callable[[int, int | None], None]
BAR: Final = "clawdforge.cli.output.bar:bar"
"""Brings the libraries of a terminal, which a pipe does without."""


@contextmanager
def progress(target: Target, what: str) -> Iterator[Told]:
    """Gives what is to be called with the bytes done so far and, where it is known, their whole number."""
    if target.quiet or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield _nobody
        return
    with load(BAR)(what) as told:
        yield told


def _nobody(_done: int, _whole: int | None) -> None:
    """There is no terminal to show it on."""
