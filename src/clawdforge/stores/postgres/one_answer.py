"""One statement for whoever reads: a second question would be answered from another state, and is refused."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from clawdforge.stores.postgres.asked import Asked
from clawdforge.stores.postgres.ordinary import Found, Key, Ordinary, keys_of
from clawdforge.stores.postgres.statements import Binding, read_row
from clawdforge.stores.postgres.texts import is_plain
from clawdforge.stores.sqlite.packs import EventRow
from clawdforge.stores.sqlite.queries import Queries
from clawdforge.stores.sqlite.rows import Value
from clawdforge.stores.sqlite.statements import NewEvents


class SecondQuestion(BaseException):
    """There is more to be asked, for which there must be a transaction. No rule catches it."""


class OneAnswer:
    """As `Statements` says, without a transaction: the first question is asked of whoever runs the work."""

    def __init__(
        self,
        queries: Queries,
        unpack: Callable[[int, int, int, bytes], tuple[EventRow, ...]],
        found: Mapping[Key, Found],
    ) -> None:
        self.queries = queries
        self.unpack = unpack
        self._found = found

    def rows(
        self, sql: str, params: dict[str, Value], fits: Callable[[tuple[Any, ...]], bool] | None = None
    ) -> Found:
        found = self._found.get((sql, tuple(params.items())))
        if found is not None:
            return found
        if self._found or fits is not None:  # a page is read from a cursor
            raise SecondQuestion
        raise Asked(sql, params)

    def row(self, sql: str, params: dict[str, Value]) -> tuple[Any, ...] | None:
        return next(iter(self.rows(sql, params)), None)

    def run(self, sql: str, params: Mapping[str, Value]) -> NoReturn:  # noqa: ARG002
        raise SecondQuestion

    def run_many(self, sql: str, params: Sequence[Mapping[str, Value]]) -> NoReturn:  # noqa: ARG002
        raise SecondQuestion

    def add_events(self, runs: Sequence[NewEvents]) -> NoReturn:  # noqa: ARG002
        raise SecondQuestion


class Question:
    """What Postgres is asked for the first question of some work. With a session comes its app, which most
    ask for next."""

    def __init__(self, asked: Asked, ordinary: Ordinary, binding: Binding) -> None:
        self._key: Key = (asked.sql, tuple(asked.params.items()))
        self._bundle = None
        params = asked.params
        if asked.sql == ordinary.whole and is_plain(params["app"]) and is_plain(params["session"]):
            self._bundle = ordinary.session
            self.bound: tuple[str, Sequence[Any]] | None = (
                self._bundle.direct,
                (params["app"], params["session"]),
            )
        else:
            self.bound = binding.bind_question(asked.sql, params)

    def read(self, rows: Sequence[Sequence[Any]]) -> dict[Key, Found]:
        found = [read_row(tuple(row)) for row in rows]
        if self._bundle is None:
            return {self._key: found}
        return {key: some for row in found for key, some, _ in keys_of(self._bundle.read(row), None)} or {
            self._key: []
        }
