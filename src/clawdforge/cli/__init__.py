"""The command line: a client of the server. Each command lives in a file of its own and is named here."""

from typing import Final

import click

from clawdforge import __version__
from clawdforge.cli.options import target_options
from clawdforge.cli.serve import serve
from clawdforge.cli.tokens import token

CONTEXT: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(context_settings=CONTEXT)
@click.version_option(__version__, "-V", "--version", prog_name="clawdforge", message="%(prog)s %(version)s")
@target_options
def main() -> None:
    """Durable sessions with AI agents.

    Start a server with `clawdforge serve`. Other commands talk to the server on the data folder, or to
    the one that --server names.
    """


@main.command()
def version() -> None:
    """Print the version."""
    click.echo(__version__)


main.add_command(serve)
main.add_command(token)
