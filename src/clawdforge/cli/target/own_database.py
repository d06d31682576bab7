"""The data folder of commands that read the database in it, which a server on Postgres does not have."""

import os
from pathlib import Path
from typing import Final

from clawdforge.cli.failures import Failure
from clawdforge.cli.target.options import Target
from clawdforge.settings import BadSettings, Settings, load_settings

ELSEWHERE: Final = (
    "CLAWDFORGE_DATABASE_URL is set, and this command works on a database in the data folder; for one in"
    " Postgres stop the server, copy the folder, and run"
    " `pg_dump --format=custom --file=forge.dump NAME`"
)


def read_settings(target: Target) -> Settings:
    try:
        return load_settings(os.environ, config=None, flags={"data_dir": target.data_dir})
    except BadSettings as error:
        raise Failure(str(error)) from None


def folder_with_database(target: Target) -> Path:
    if read_settings(target).database_url is not None:
        raise Failure(ELSEWHERE)
    return target.folder
