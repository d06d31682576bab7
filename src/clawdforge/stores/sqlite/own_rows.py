"""The rows of one app: every statement gets its name, and every page has its bounds."""

from typing import Any, TypeVar

from clawdforge.stores.sqlite.rows import Codec, Value
from clawdforge.stores.sqlite.statements import Statements

R = TypeVar("R")
ROW_BYTES = 512  # to read a row and to write it out costs as much as so many bytes of it


class OwnRows:
    def __init__(self, db: Statements, app: str) -> None:
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

    def _page(
        self, codec: Codec[R], name: str, limit: int, max_bytes: int, /, **params: Value
    ) -> tuple[list[R], bool]:
        """As many as fit, and whether there are more."""
        room = Room(limit, max_bytes)
        values = {"app": self.app, "limit": limit + 1, **params}
        found = [codec.read(row) for row in self._db.rows(self._q.view[name], values, room.fits)]
        return found, room.is_over

    def _number(self, name: str, **params: Value) -> int:
        row = self._db.row(self._q.view[name], {"app": self.app, **params})
        return int(row[0]) if row and row[0] is not None else 0

    def _run(self, name: str, /, **params: Value) -> int:
        return self._db.run(self._q.tx[name], {"app": self.app, **params})

    def _check_own(self, app_name: str) -> None:
        if app_name != self.app:
            raise ValueError(f"a row of app {app_name} in a transaction of app {self.app}")


class Room:
    """How many rows a page has room for, and how many bytes, as stored; at least one row always fits.

    No page may be empty while there is more. `row_bytes` is what a row costs besides, as if it were bytes.
    """

    def __init__(self, rows: int, max_bytes: int | None, row_bytes: int = ROW_BYTES) -> None:
        self.is_over = False  # there was a row that did not fit
        self._row_bytes = row_bytes
        self._rows = rows
        self._bytes = max_bytes
        self._count = 0

    def fits(self, row: tuple[Any, ...]) -> bool:
        if self._bytes is not None:
            size = sum(len(value) for value in row if isinstance(value, str | bytes))
            self._bytes -= size + self._row_bytes
        is_full = self._bytes is not None and self._bytes < 0 and self._count > 0
        self.is_over = is_full or self._count >= self._rows
        self._count += 1
        return not self.is_over
