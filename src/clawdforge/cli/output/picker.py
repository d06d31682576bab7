"""A list of sessions to choose from with the arrow keys."""

from typing import Any

from prompt_toolkit.shortcuts import choice

from clawdforge.cli.failures import Exit, Failure


def pick(rows: list[dict[str, Any]], lines: list[str]) -> dict[str, Any]:
    """The chosen row; Ctrl-C leaves."""
    try:
        number = choice("Which session?", options=list(enumerate(lines)))
    except (KeyboardInterrupt, EOFError):
        raise Failure("nothing was chosen", Exit.INTERRUPTED) from None
    return rows[number]
