"""The reference of the command line, written from the commands' own help."""

from collections.abc import Iterator

import click

from clawdforge.cli import CONTEXT
from clawdforge.cli import main as program
from clawdforge.cli.failures import MEANINGS, Exit

WIDTH = 100
OPENING = """\
# The command line

Written from the commands' own help by `scripts/golden`. The [guide](../guides/terminal.md) shows its use.
`mydeepagent` is another name of the same program.

Every command takes `--data-dir` and `--server` before or after its name. With neither, it talks to the server
on the data folder, and starts one in the background when there is none. Answers go to stdout, everything else
to stderr. `NO_COLOR` switches colours off.

## Exit codes

| code | |
|---|---|
"""


def page() -> str:
    rows = [f"| {int(code)} | {MEANINGS[code]} |" for code in Exit]
    parts = [OPENING + "\n".join(rows) + "\n"]
    for path, command in commands(program):
        words = " ".join(("clawdforge", *path))
        shown = command.get_help(context(path, command)).rstrip()
        parts.append(f"## {words}\n\n```text\n{shown}\n```\n")
    return "\n".join(parts)


def commands(
    group: click.Group, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """The group itself, then what is in it, in the order of the alphabet."""
    yield path, group
    found = click.Context(group)
    for name in group.list_commands(found):
        command = group.get_command(found, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


def context(path: tuple[str, ...], command: click.Command) -> click.Context:
    parent = click.Context(
        program, info_name="clawdforge", terminal_width=WIDTH, help_option_names=CONTEXT["help_option_names"]
    )
    for name in path[:-1]:
        parent = click.Context(click.Group(name), info_name=name, parent=parent)
    return click.Context(command, info_name=path[-1], parent=parent) if path else parent
