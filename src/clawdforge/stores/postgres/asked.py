"""Finds out what work asks for first, without an answer."""

from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from clawdforge.stores.sqlite.packs import EventRow
from clawdforge.stores.sqlite.queries import Queries
from clawdforge.stores.sqlite.rows import Value
from clawdforge.stores.sqlite.statements import NewEvents


class Asked(BaseException):
    """The first thing that a job asks for."""

    def __init__(self, sql: str, params: Mapping[str, Value]) -> None:
        super().__init__()
        self.sql = sql
        self.params = params


class Probe:
    """Statements that answer nothing, and tell what a job asks for first."""

    def __init__(
        self, queries: Queries, unpack: Callable[[int, int, int, bytes], tuple[EventRow, ...]]
    ) -> None:
        self.queries = queries
        self.unpack = unpack

    def rows(self, sql: str, params: dict[str, Value], fits: object = None) -> NoReturn:  # noqa: ARG002
        raise Asked(sql, params)

    def row(self, sql: str, params: dict[str, Value]) -> NoReturn:
        raise Asked(sql, params)

    def run(self, sql: str, params: dict[str, Value]) -> NoReturn:
        raise Asked(sql, params)

    def run_many(self, sql: str, params: Sequence[Mapping[str, Value]]) -> NoReturn:  # noqa: ARG002
        raise Asked(sql, {})

    def add_events(self, runs: Sequence[NewEvents]) -> NoReturn:  # noqa: ARG002
        raise Asked("", {})
