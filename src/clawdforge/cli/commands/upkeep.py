"""`clawdforge backup`, `restore` and `doctor`: a data folder as a file, and what is wrong with it."""

import os
from pathlib import Path

import click

from clawdforge.cli.failures import Failure
from clawdforge.cli.output.progress import show_progress
from clawdforge.cli.target.options import Target, data_dir_option
from clawdforge.core.model import SystemClock
from clawdforge.settings import BadSettings, load_settings
from clawdforge.upkeep.archive import UpkeepError
from clawdforge.upkeep.backup import backup as make
from clawdforge.upkeep.backup import restore as put_back
from clawdforge.upkeep.doctor import examine


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@data_dir_option
@click.pass_obj
def backup(target: Target, /, file: Path) -> None:
    """Write a consistent copy of the data folder to FILE, also while a server runs.

    It holds every acknowledged turn, uploads, workspaces, agents' memories as of the last turn, and the
    tokens in the folder: keep it as secret as the folder. A name that ends in .gz is compressed.
    """
    try:
        with show_progress(target, "backing up") as report:
            made = make(target.folder, file, SystemClock(), report)
    except UpkeepError as error:
        raise Failure(str(error)) from None
    click.echo(f"{file}: {made.sessions} sessions, {made.files} uploads, {made.bytes} bytes")


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@data_dir_option
@click.pass_obj
def restore(target: Target, /, file: Path) -> None:
    """Restore a backup into the data folder, which must be empty or missing.

    At the next start, turns that were running when it was made are marked interrupted, and queued turns run.
    """
    try:
        with show_progress(target, "restoring") as report:
            put_back(file, target.folder, report)
    except UpkeepError as error:
        raise Failure(str(error)) from None
    click.echo(f"restored to {target.folder}; start it with: clawdforge serve --data-dir {target.folder}")


@click.command()
@data_dir_option
@click.pass_obj
def doctor(target: Target, /) -> None:
    """Check the data folder and this machine for problems. Exits with 1 when something has to be done."""
    try:
        settings = load_settings(os.environ, config=None, flags={"data_dir": target.data_dir})
    except BadSettings as error:
        raise Failure(str(error)) from None
    bad = False
    for found in examine(settings, SystemClock()):
        bad = bad or found.level == "bad"
        advice = f"\n{'':18}→ {found.advice}" if found.advice else ""
        click.echo(f"{found.level:4}  {found.about:11} {found.text}{advice}")
    if bad:
        raise SystemExit(1)
