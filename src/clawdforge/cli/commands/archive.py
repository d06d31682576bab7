"""`clawdforge archive`: old entries of the audit and old records of runs, put away into files."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from clawdforge.cli.failures import Failure
from clawdforge.cli.target.options import Target, data_dir_option
from clawdforge.cli.target.own_database import folder_with_database
from clawdforge.upkeep.archive import UpkeepError
from clawdforge.upkeep.ledgers import Kind, put_away
from clawdforge.upkeep.ledgers import verify as check

FILE: Final = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
BEFORE: Final = click.option(
    "--before",
    type=click.DateTime(["%Y-%m-%d"]),
    required=True,
    help="Archive what is older than this day, in UTC.",
)


@click.group()
@data_dir_option
def archive() -> None:
    """Put old audit entries and run records into a file, and remove them. Stop the server first."""


@archive.command()
@FILE
@BEFORE
@data_dir_option
@click.pass_obj
def audit(target: Target, /, file: Path, before: datetime) -> None:
    """Put old entries of the audit log into FILE, compressed, and remove them.

    The database keeps the last hash, so that `audit verify` checks what is left; keep the hash that is
    printed, and FILE. `archive verify` checks the file.
    """
    _put_away("audit", target, file, before)


@archive.command()
@FILE
@BEFORE
@data_dir_option
@click.pass_obj
def runs(target: Target, /, file: Path, before: datetime) -> None:
    """Put old records of one-shot runs, with their prompts, into FILE, compressed, and remove them."""
    _put_away("runs", target, file, before)


@archive.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def verify(file: Path) -> None:
    """Check that FILE is as it was written, and print the last hash of an audit log."""
    try:
        found = check(file)
    except UpkeepError as error:
        raise Failure(str(error)) from None
    click.echo(f"{found.count} entries, all intact", err=True)
    click.echo(found.head or found.kind)


def _put_away(kind: Kind, target: Target, file: Path, before: datetime) -> None:
    micros = int(before.replace(tzinfo=UTC).timestamp()) * 1_000_000
    try:
        found = put_away(kind, folder_with_database(target), file, micros)
    except UpkeepError as error:
        raise Failure(str(error)) from None
    click.echo(f"{file}: {found.count} entries" + (f", up to {found.head}" if found.head else ""))
