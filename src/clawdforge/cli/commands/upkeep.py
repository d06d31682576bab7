"""`clawdforge backup`, `restore` and `doctor`: a data folder as a file, and what is wrong with it."""

import itertools
from pathlib import Path

import click

from clawdforge.cli.failures import Exit, Failure
from clawdforge.cli.output.progress import show_progress
from clawdforge.cli.target.options import Target, data_dir_option
from clawdforge.cli.target.own_database import folder_with_database, read_settings
from clawdforge.core.clock import SystemClock
from clawdforge.upkeep.archive import UpkeepError
from clawdforge.upkeep.backup import WORKSPACE_BYTES
from clawdforge.upkeep.backup import backup as make
from clawdforge.upkeep.backup import restore as put_back
from clawdforge.upkeep.deep import examine_deep
from clawdforge.upkeep.doctor import examine
from clawdforge.upkeep.unpacking import MAX_FILES, UnpackLimits

SHOWN = 20


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--max-workspace-bytes",
    type=click.IntRange(min=0),
    default=WORKSPACE_BYTES,
    show_default=True,
    metavar="N",
    help="How much of one workspace is taken.",
)
@data_dir_option
@click.pass_obj
def backup(target: Target, /, file: Path, max_workspace_bytes: int) -> None:
    """Write a consistent copy of the data folder to FILE, also while a server runs.

    It holds every acknowledged turn, uploads, workspaces, agents' memories as of the last turn, and the
    tokens in the folder: keep it as secret as the folder. A name that ends in .gz is compressed. Files of a
    workspace that cannot be taken are named, and the exit code is 8. So it is when there are more files than
    `restore` takes by itself; the message says with which option it does.
    """
    folder = folder_with_database(target)
    try:
        with show_progress(target, "backing up") as report:
            made = make(folder, file, SystemClock(), report, max_workspace_bytes)
    except UpkeepError as error:
        raise Failure(str(error)) from None
    click.echo(f"{file}: {made.sessions} sessions, {made.files} uploads, {made.bytes} bytes")
    for name, why in list(made.left_out.items())[:SHOWN]:
        click.echo(f"left out: {name!r}: {why}", err=True)
    if made.needs_files > MAX_FILES:
        click.echo(f"more than `restore` takes by itself: add --max-files {made.needs_files} to it", err=True)
    if made.left_out:
        raise Failure(
            f"the backup is complete but for {made.left_out_count} files or folders of workspaces;"
            " remove them or make them readable, and make another",
            Exit.INCOMPLETE,
        )
    if made.needs_files > MAX_FILES:
        raise Failure(
            "the backup is complete, but only `restore` with that option takes it; note the option with it,"
            " or remove files of workspaces and make another",
            Exit.INCOMPLETE,
        )


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--max-bytes", type=click.IntRange(min=0), metavar="N", help="How much it may unpack to.")
@click.option(
    "--max-ratio",
    type=click.IntRange(min=1),
    default=UnpackLimits().ratio,
    show_default=True,
    metavar="N",
    help="How many times its own size it may unpack to.",
)
@click.option(
    "--max-files",
    type=click.IntRange(min=1),
    default=MAX_FILES,
    show_default=True,
    metavar="N",
    help="How many files and folders it may hold.",
)
@data_dir_option
@click.pass_obj
def restore(target: Target, /, file: Path, max_bytes: int | None, max_ratio: int, max_files: int) -> None:
    """Restore a backup into the data folder, which must be empty or missing.

    At the next start, turns that were running when it was made are marked interrupted, and queued turns run.
    An archive that no `backup` made, or that would fill the disk, is refused, and nothing of it stays. The
    tokens in it stay valid: restore only what you have kept yourself.
    """
    folder = folder_with_database(target)
    try:
        with show_progress(target, "restoring") as report:
            limits = UnpackLimits(bytes=max_bytes, ratio=max_ratio, entries=max_files)
            put_back(file, folder, report, limits)
    except UpkeepError as error:
        raise Failure(str(error)) from None
    click.echo(f"restored to {folder}; start it with: clawdforge serve --data-dir {folder}")


@click.command()
@click.option("--deep", is_flag=True, help="Also read every session, and compare it with its log.")
@click.option("--repair", is_flag=True, help="With --deep: rebuild what the log contains.")
@data_dir_option
@click.pass_obj
def doctor(target: Target, /, *, deep: bool, repair: bool) -> None:
    """Check the data folder and this machine for problems. Exits with 1 when something has to be done.

    --repair needs a folder on which no server runs.
    """
    settings = read_settings(target)
    bad = False
    clock = SystemClock()
    is_deep = deep or repair
    if is_deep:
        folder_with_database(target)
    more = examine_deep(settings.data_dir, clock, repair=repair) if is_deep else ()
    for found in itertools.chain(examine(settings, clock), more):
        bad = bad or found.level == "bad"
        advice = f"\n{'':18}→ {found.advice}" if found.advice else ""
        click.echo(f"{found.level:4}  {found.about:11} {found.text}{advice}")
    if bad:
        raise SystemExit(1)
