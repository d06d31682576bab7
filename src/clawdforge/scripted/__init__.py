"""The scripted agent: where its program lies and how to start it."""

# pathlib would add 6 ms to each start of a program that is started thousands of times.
# ruff: noqa: PTH100, PTH118, PTH120

import os.path
import sys


def path() -> str:
    """Return the program's file; it runs by itself, without the rest of clawdforge."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "__main__.py")


def command(*flags: str) -> list[str]:
    """Return the fastest command line that starts the agent with these flags.

    With the interpreter itself, not the link of a virtual environment: the agent needs no packages.
    """
    return [os.path.realpath(sys.executable), "-I", "-S", path(), *flags]
