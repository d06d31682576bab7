"""The command line, a client of the server. The module of a command is imported when it is called."""

from typing import Any, Final

import click

from clawdforge import __version__
from clawdforge.cli.lazy import Program
from clawdforge.cli.options import target_options

CONTEXT: Final[dict[str, Any]] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

HERE: Final = "clawdforge.cli"
COMMANDS: Final = {
    "chat": f"{HERE}.chat:chat",
    "serve": f"{HERE}.serve:serve",
    "sessions": f"{HERE}.sessions:sessions",
    **{name: f"{HERE}.turns:{name}" for name in ("send", "stop", "run")},
    "tail": f"{HERE}.tail:tail",
    **{name: f"{HERE}.permissions:{name}" for name in ("approve", "deny")},
    **{name: f"{HERE}.history:{name}" for name in ("undo", "redo", "retry")},
    **{name: f"{HERE}.catalog:{name}" for name in ("agents", "personas", "usage")},
    "open": f"{HERE}.catalog:open_",
    "token": f"{HERE}.tokens:token",
    **{name: f"{HERE}.operator:{name}" for name in ("app", "audit")},
    **{name: f"{HERE}.upkeep:{name}" for name in ("backup", "restore", "doctor")},
    "config": f"{HERE}.config:config",
    "completion": f"{HERE}.completion:completion",
}


@click.group(cls=Program, lazy=COMMANDS, context_settings=CONTEXT)
@click.version_option(__version__, "-V", "--version", prog_name="clawdforge", message="%(prog)s %(version)s")
@target_options
def main() -> None:
    """Durable sessions with AI agents.

    Without a command's name it is a conversation in the terminal: `clawdforge`, `clawdforge -c` to continue
    the last one here, `clawdforge -p "prompt"` for one answer. `clawdforge chat --help` shows the options.

    Commands talk to the server on the data folder, and start one in the background if there is none; or to
    the one that --server names, with the token in CLAWDFORGE_TOKEN.
    """


@main.command()
def version() -> None:
    """Print the version."""
    click.echo(__version__)
