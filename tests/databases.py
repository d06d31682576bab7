"""Lets the servers of the tests keep their rows in Postgres.

`CLAWDFORGE_TEST_STORE=postgres ./scripts/test tests/api` does so.
"""

import atexit
import contextlib
import os
from functools import cache
from pathlib import Path

import pytest

from tests.postgres import Postgres, run_postgres

WANTED = os.environ.get("CLAWDFORGE_TEST_STORE") == "postgres"
in_file = pytest.mark.skipif(WANTED, reason="a server of it keeps its rows in a file")


class Databases:
    """One Postgres for as long as this process lives, and in it a database for each data folder."""

    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres
        self._urls: dict[Path, str] = {}

    def find(self, data_dir: Path) -> str:
        if data_dir not in self._urls:
            self._urls[data_dir] = self._postgres.make_database()
        return self._urls[data_dir]


@cache
def wanted() -> Databases | None:
    """None where servers keep their rows as usual, in a file of their folder."""
    if not WANTED:
        return None
    with contextlib.ExitStack() as stack:
        found = Databases(stack.enter_context(run_postgres()))
        atexit.register(stack.pop_all().close)
    return found
