"""Sends many statements as one: each is a function of the connection, and one call runs them all.

They live as long as the connection, are nobody else's, and are planned once. They are run in their order, in
one transaction, which waits for the lock of all writers and is committed when the call returns.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import asyncpg

from clawdforge.stores.postgres.link import Link
from clawdforge.stores.postgres.ordinary import Answer, Bundle, Ordinary
from clawdforge.stores.postgres.queries import SQL
from clawdforge.stores.postgres.statements import PgDb, read_row

MOST_FUNCTIONS: Final = 500
ARGUMENT: Final = re.compile(r"\$(\d+)::(double precision|\w+(?:\[\])?)")
REFUSED: Final = "CF001"
"""The state of the error when a row was not there that was to be changed."""
APPEND_ARGS: Final = 18


class NoFunctions(asyncpg.PostgresError):  # type: ignore[misc]  # it has no types
    """The user of the database may not make any: each call is a statement then."""


class Write(NamedTuple):
    """A statement with its arguments; with `must`, a row has to be there that it changes."""

    text: str
    args: Sequence[Any]
    must: bool


class Functions:
    """Those of one connection."""

    def __init__(self, db: PgDb, ordinary: Ordinary) -> None:
        self._db = db
        self._ordinary = ordinary
        self._names: dict[tuple[str, bool], str] = {}
        self._is_ready = False
        self.is_refused = False  # the user may not make functions
        self._call = lru_cache(1024)(_call)

    @property
    def _link(self) -> Link:
        if not self._is_ready:
            bundles = (self._ordinary.light.definition, self._ordinary.heavy.definition)
            try:
                self._db.link.run(";\n".join(((SQL / "functions.sql").read_text("utf-8"), *bundles)))
            except asyncpg.InsufficientPrivilegeError as error:
                self.is_refused = True
                raise NoFunctions(str(error)) from error
            self._is_ready = True
        return self._db.link

    def can_take(self, text: str, *, must: bool) -> bool:
        return (text, must) in self._names or len(self._names) < MOST_FUNCTIONS

    def take_lock(self) -> None:
        self._link.run("SELECT pg_temp.take_lock()")

    def give_lock_back(self) -> None:
        """Also after a statement that failed, and where no function could be made."""
        self._db.link.run("SELECT pg_advisory_unlock_all(); RESET idle_session_timeout")

    def ask(self, bundle: Bundle, wanted: Sequence[tuple[str, str]], *, is_locked: bool) -> list[Answer]:
        apps, sessions = [app for app, _ in wanted], [session for _, session in wanted]
        rows = self._link.fetch(bundle.question, (is_locked, apps, sessions))
        return [bundle.read(read_row(row)) for row in rows]

    def send(self, writes: Sequence[Write], appended: Sequence[Any] | None, *, is_locked: bool) -> None:
        """Commit all of it, or nothing, and give the lock back. `appended` is what `pg_temp.append` takes."""
        link = self._link
        self._make_missing(link, writes)
        shape = tuple((self._names[write.text, write.must], len(write.args)) for write in writes)
        args = [is_locked, *(arg for write in writes for arg in write.args)]
        if appended is not None:
            args += appended
        link.run(self._call(shape, has_appended=appended is not None), args)

    def _make_missing(self, link: Link, writes: Sequence[Write]) -> None:
        missing = {
            (write.text, write.must): None for write in writes if (write.text, write.must) not in self._names
        }
        if missing:
            names = {one: f"write_{number}" for number, one in enumerate(missing, len(self._names))}
            link.run(";\n".join(_define(name, *one) for one, name in names.items()))
            self._names |= names


def _define(name: str, text: str, must: bool) -> str:
    kinds = dict(sorted((int(number), kind) for number, kind in ARGUMENT.findall(text)))
    check = f"IF NOT FOUND THEN RAISE 'no such row' USING ERRCODE = '{REFUSED}'; END IF;" if must else ""
    return (
        f"CREATE FUNCTION pg_temp.{name}({', '.join(kinds.values())}) RETURNS void"
        " LANGUAGE plpgsql AS $write$ BEGIN\n"
        f"{text};\n{check}\nEND $write$"
    )


def _call(shape: tuple[tuple[str, int], ...], *, has_appended: bool) -> str:
    """Postgres evaluates what is selected from left to right."""
    calls, place = ["pg_temp.keep_lock($1)"], 2
    for name, count in (*shape, *([("append", APPEND_ARGS)] if has_appended else [])):
        calls.append(f"pg_temp.{name}({', '.join(f'${number}' for number in range(place, place + count))})")
        place += count
    return f"SELECT {', '.join(calls)}"
