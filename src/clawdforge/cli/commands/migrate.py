"""`clawdforge migrate`: tables brought up to date, and sessions moved from the data folder into Postgres."""

import click

from clawdforge.cli.failures import Failure
from clawdforge.cli.output.progress import show_progress
from clawdforge.cli.target.options import Target, data_dir_option
from clawdforge.cli.target.own_database import read_settings
from clawdforge.core.clock import SystemClock
from clawdforge.upkeep.archive import UpkeepError
from clawdforge.upkeep.moving import MOVED, bring_up_to_date, move_to_postgres


@click.command()
@click.option("--from-sqlite", is_flag=True, help="Move the sessions of the data folder there first.")
@data_dir_option
@click.pass_obj
def migrate(target: Target, /, *, from_sqlite: bool) -> None:
    """Bring the tables up to date, as `serve` does at its start. Stop the server first.

    With --from-sqlite, every row of the data folder's database is written to the empty one that
    CLAWDFORGE_DATABASE_URL names, read back and compared; all of it or nothing. Homes, workspaces and uploads
    stay in the folder, and so does the old file, under another name.
    """
    settings = read_settings(target)
    url, folder = settings.database_url, settings.data_dir
    try:
        if from_sqlite:
            if url is None:
                raise Failure("set CLAWDFORGE_DATABASE_URL to the database that the sessions are to go to")
            with show_progress(target, "moving rows") as report:
                count = move_to_postgres(folder, url, SystemClock(), report)
            click.echo(f"{count} rows moved and compared; the old database is {folder / MOVED}")
        version = bring_up_to_date(folder, url, SystemClock())
    except UpkeepError as error:
        raise Failure(str(error)) from None
    click.echo(f"{version}: all tables are up to date")
