"""The rows of one app: every statement gets its name."""

from typing import Any, TypeVar

from clawdforge.stores.sqlite.connection import Db
from clawdforge.stores.sqlite.rows import Codec, Value

R = TypeVar("R")


class OwnRows:
    def __init__(self, db: Db, app: str) -> None:
        self._db = db
        self._q = db.queries
        self.app = app

    def _rows(self, name: str, /, **params: Value) -> list[tuple[Any, ...]]:
        return self._db.rows(self._q.view[name], {"app": self.app, **params})

    def _get(self, codec: Codec[R], name: str, /, **params: Value) -> R | None:
        row = self._db.row(self._q.view[name], {"app": self.app, **params})
        return None if row is None else codec.read(row)

    def _list(self, codec: Codec[R], name: str, /, **params: Value) -> list[R]:
        return [codec.read(row) for row in self._rows(name, **params)]

    def _number(self, name: str, **params: Value) -> int:
        row = self._db.row(self._q.view[name], {"app": self.app, **params})
        return int(row[0]) if row and row[0] is not None else 0

    def _run(self, name: str, /, **params: Value) -> int:
        return self._db.run(self._q.tx[name], {"app": self.app, **params})

    def _check_own(self, app_name: str) -> None:
        if app_name != self.app:
            raise ValueError(f"a row of app {app_name} in a transaction of app {self.app}")
