"""Runs the store's statements on Postgres: parameters by name, values as Postgres can hold them."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from clawdforge.stores.postgres.link import Link
from clawdforge.stores.postgres.texts import MARK, from_postgres, to_postgres
from clawdforge.stores.sqlite.packs import unpack
from clawdforge.stores.sqlite.queries import Queries
from clawdforge.stores.sqlite.rows import Value
from clawdforge.stores.sqlite.statements import NewEvents

MARKS: Final = re.compile(r"(?<![:\w]):([a-z_]\w*)(::\w+\[\])?")
TYPES: Final[Mapping[type, str]] = {
    bool: "bigint",
    int: "bigint",
    float: "double precision",
    str: "text",
    bytes: "bytea",
}
ADD_EVENT: Final = (
    "INSERT INTO events (session_id, seq, turn, type, by_agent, data, compact)"
    " VALUES ($1, $2, $3, $4, $5, $6, 1)"
)
READ_PACKS: Final = 16


class Binding:
    """What Postgres gets for a statement. Lists come as JSON, and go as arrays where it says `::text[]`."""

    def __init__(self) -> None:
        self._translate = lru_cache(4096)(_translate)

    def bind(self, sql: str, params: Mapping[str, Value]) -> tuple[str, list[Any]]:
        kinds = tuple((name, _kind_of(value)) for name, value in params.items() if value is not None)
        text, names = self._translate(sql, kinds)
        return text, [
            _array(params[name]) if is_array else to_postgres(params[name]) for name, is_array in names
        ]

    def bind_question(self, sql: str, params: Mapping[str, Value]) -> tuple[str, list[Any]] | None:
        """None for a value that cannot be held, which matches no row."""
        try:
            return self.bind(sql, params)
        except (UnicodeEncodeError, OverflowError):
            return None


class PgDb:
    """As `Statements` says."""

    def __init__(self, link: Link, queries: Queries) -> None:
        self.link = link
        self.queries = queries
        self.unpack = lru_cache(READ_PACKS)(unpack)
        self._binding = Binding()
        self.bind = self._binding.bind

    def rows(
        self, sql: str, params: dict[str, Value], fits: Callable[[tuple[Any, ...]], bool] | None = None
    ) -> list[tuple[Any, ...]]:
        bound = self._binding.bind_question(sql, params)
        if bound is None:
            return []
        if fits is None:
            return [read_row(row) for row in self.link.fetch(*bound)]
        return self.link.fetch_while(*bound, read_row, fits)

    def row(self, sql: str, params: dict[str, Value]) -> tuple[Any, ...] | None:
        bound = self._binding.bind_question(sql, params)
        return None if bound is None else next((read_row(row) for row in self.link.fetch(*bound)), None)

    def run(self, sql: str, params: Mapping[str, Value]) -> int:
        return self.link.run(*self.bind(sql, params))

    def run_many(self, sql: str, params: Sequence[Mapping[str, Value]]) -> None:
        for some in params:
            self.run(sql, some)

    def add_events(self, runs: Sequence[NewEvents]) -> None:
        rows = [
            (session, seq, *more, data)
            for session, first, *more, each in runs
            for seq, data in enumerate(each, first)
        ]
        self.link.run_many(ADD_EVENT, [tuple(map(to_postgres, row)) for row in rows])


def _kind_of(value: Any) -> type:
    """One of `TYPES`: a word of a list of words is a text."""
    kind = type(value)
    return kind if kind in TYPES else next(one for one in kind.__mro__ if one in TYPES)


def _translate(sql: str, kinds: tuple[tuple[str, type], ...]) -> tuple[str, tuple[tuple[str, bool], ...]]:
    """Numbers in the place of names, each with its type; nothing is said as NULL, which has no type."""
    known = dict(kinds)
    names: dict[tuple[str, bool], int] = {}

    def put(found: re.Match[str]) -> str:
        name, array = found[1], found[2] or ""
        if name not in known:
            return f"NULL{array}"
        number = names.setdefault((name, bool(array)), len(names) + 1)
        return f"${number}{array or '::' + TYPES[known[name]]}"

    return MARKS.sub(put, sql), tuple(names)


def _array(value: Value) -> list[Any]:
    return [to_postgres(one) for one in json.loads(str(value))]


def read_row(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Hardly any has a text that was changed, and every row that is read comes through here."""
    for value in row:
        if type(value) is str and MARK in value:
            return tuple(map(from_postgres, row))
    return row
