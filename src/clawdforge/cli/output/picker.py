"""A list of sessions to choose from with the arrow keys."""

from prompt_toolkit.shortcuts import choice

from clawdforge.cli.failures import Exit, Failure
from clawdforge.cli.target.find_session import Row


def pick(rows: list[Row], lines: list[str]) -> Row:
    """The chosen row; Ctrl-C leaves."""
    try:
        number = choice("Which session?", options=list(enumerate(lines)))
    except (KeyboardInterrupt, EOFError):
        raise Failure("nothing was chosen", Exit.INTERRUPTED) from None
    return rows[number]
