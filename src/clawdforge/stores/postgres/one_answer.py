"""One statement for whoever reads: a second question would be answered from another state, and is refused."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from clawdforge.stores.postgres.ordinary import Found, Key, Ordinary, keys_of
from clawdforge.stores.postgres.statements import PgDb, read_row
from clawdforge.stores.postgres.texts import is_plain
from clawdforge.stores.sqlite.packs import EventRow
from clawdforge.stores.sqlite.queries import Queries
from clawdforge.stores.sqlite.rows import Value
from clawdforge.stores.sqlite.statements import NewEvent


class SecondQuestion(BaseException):
    """There is more to be asked, for which there must be a transaction. No rule catches it."""


class OneAnswer:
    """As `Statements` says, without a transaction. With a session comes its app, which most ask for next."""

    def __init__(self, db: PgDb, ordinary: Ordinary) -> None:
        self.queries: Queries = db.queries
        self.unpack: Callable[[int, int, int, bytes], tuple[EventRow, ...]] = db.unpack
        self._db = db
        self._ordinary = ordinary
        self._found: dict[Key, Found] = {}

    def rows(
        self, sql: str, params: dict[str, Value], fits: Callable[[tuple[Any, ...]], bool] | None = None
    ) -> Found:
        key = (sql, tuple(params.items()))
        if key in self._found:
            return self._found[key]
        if self._found or fits is not None:  # a page is read from a cursor
            raise SecondQuestion
        if sql == self.queries.view["session"] and all(map(is_plain, params.values())):
            self._learn(params)
        else:
            self._found[key] = self._db.rows(sql, params)
        return self._found[key]

    def row(self, sql: str, params: dict[str, Value]) -> tuple[Any, ...] | None:
        return next(iter(self.rows(sql, params)), None)

    def run(self, sql: str, params: Mapping[str, Value]) -> NoReturn:  # noqa: ARG002
        raise SecondQuestion

    def run_many(self, sql: str, params: Sequence[Mapping[str, Value]]) -> NoReturn:  # noqa: ARG002
        raise SecondQuestion

    def add_events(self, events: Sequence[NewEvent]) -> NoReturn:  # noqa: ARG002
        raise SecondQuestion

    def count_changes(self) -> int:
        return 0

    def _learn(self, params: Mapping[str, Value]) -> None:
        bundle = self._ordinary.session
        rows = self._db.link.fetch(bundle.direct, (params["app"], params["session"]))
        for row in rows:
            for key, found, _ in keys_of(bundle.read(read_row(row)), None):
                self._found[key] = found
