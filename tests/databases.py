"""Where the servers of the tests keep their rows: in a file each, or each in a database of one Postgres.

Modules that are marked `on_both` run with the one and with the other. Everything runs on Postgres with
`CLAWDFORGE_TEST_STORE=postgres ./scripts/test tests/api tests/callers`.
"""

import atexit
import contextlib
import os
import re
from collections.abc import Sequence
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import pytest

from clawdforge.stores.postgres.link import Link
from tests.needs import needs
from tests.postgres import Postgres, run_postgres

Store: TypeAlias = Literal["sqlite", "postgres"]
USUAL: Final[Store] = "postgres" if os.environ.get("CLAWDFORGE_TEST_STORE") == "postgres" else "sqlite"
in_file = pytest.mark.skipif(USUAL == "postgres", reason="a server of it keeps its rows in a file")


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
def databases() -> Databases:
    """Started by the first who asks. What a test starts is ended with it, so a fixture has to ask first."""
    with contextlib.ExitStack() as stack:
        found = Databases(stack.enter_context(run_postgres()))
        atexit.register(stack.pop_all().close)
    return found


def run_on_postgres(url: str, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    numbers = count(1)
    with contextlib.closing(Link(url)) as link:
        return link.fetch(re.sub(r"\?", lambda _: f"${next(numbers)}", statement), values)


def run_on_both(metafunc: pytest.Metafunc) -> None:
    """A test of a module that is marked `on_both`, if a server takes part in it."""
    if "store" in metafunc.fixturenames and metafunc.definition.get_closest_marker("on_both"):
        others = [] if USUAL == "postgres" else [pytest.param("postgres", marks=needs("postgres"))]
        metafunc.parametrize("store", [USUAL, *others], indirect=True)
