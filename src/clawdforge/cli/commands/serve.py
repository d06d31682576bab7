"""`clawdforge serve`: settings from flags, environment and file, then the server until it is told to stop."""

import os
import typing
from pathlib import Path
from typing import Any

import click

from clawdforge.cli.target.options import Target, data_dir_option
from clawdforge.settings import BadSettings, Sandbox, load_settings, unknown_variables
from clawdforge.start import run


@click.command()
@click.option("--host", help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=int, help="Port to listen on; 0 takes a free one.  [default: 8800]")
@data_dir_option
@click.option(
    "--trust-loopback",
    is_flag=True,
    default=None,
    help="Let requests to /api/… without a token act as the app `local`. Every program on this machine can "
    "then do so, except agents.",
)
@click.option("--sandbox", type=click.Choice(typing.get_args(Sandbox)), help="How agents are contained.")
@click.option(
    "--idle-exit", type=float, metavar="SECS", help="Exit after this long without requests and turns."
)
@click.option(
    "--config",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Settings file.  [default: clawdforge.toml]",
)
@click.pass_obj
def serve(target: Target, /, config: Path | None, **flags: Any) -> None:
    """Run the server.

    Every setting can also be given as a variable CLAWDFORGE_NAME or in the settings file; flags win over
    variables, and variables over the file.
    """
    if target.server:
        raise click.UsageError("serve starts a server; --server is for commands that talk to one")
    try:
        settings = load_settings(os.environ, config=config, flags={**flags, "data_dir": target.data_dir})
    except BadSettings as error:
        raise click.ClickException(str(error)) from None
    for line in unknown_variables(os.environ):
        click.echo(f"warning: {line}", err=True)
    raise SystemExit(run(settings))
