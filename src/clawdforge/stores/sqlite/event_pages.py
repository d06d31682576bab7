"""The one reader of events: pages of a session's log, in order, from rows and from packs alike."""

from typing import Any, Final

from clawdforge.stores.sqlite.packs import EventRow
from clawdforge.stores.sqlite.rows import Value
from clawdforge.stores.sqlite.statements import Statements

END: Final = 2**63 - 1
LOWEST: Final = -(2**63)


class EventPages:
    """The log of one app's sessions in the state in which the connection is."""

    def __init__(self, db: Statements, app: str) -> None:
        self._db = db
        self._q = db.queries.packs
        self._app = app

    def page(
        self,
        session_id: str,
        *,
        after: int,
        limit: int,
        max_bytes: int,
        last: int = END,
        turn: int | None = None,
        by_agent: int | None = None,
    ) -> list[EventRow]:
        """Rising by seq: those after one number and up to another; of one turn or one side, if that is said.

        As many as fit, but at least one: no page may be empty while there is more.
        """
        page = _Page(limit, max_bytes)
        wanted: dict[str, Value] = {"session": session_id, "turn": turn, "by_agent": by_agent}
        while page.places > 0 and after < last:
            pack = self._row("next_pack", session=session_id, after=after)
            until = last if pack is None else min(last, int(pack[1]) - 1)
            if until > after:
                self._add_rows(page, wanted, after, until)
            if pack is None or until == last:
                break
            for row in self._db.unpack(*pack):
                is_wanted = turn in (None, row.turn) and by_agent in (None, row.by_agent)
                if after < row.seq <= last and is_wanted and not page.add(row):
                    break
            after = int(pack[2])
        return page.rows

    def lowest(self, session_id: str) -> int | None:
        """The number of the first event; below 1 if it tells what the session began with."""
        return min(self._numbers("lowest", session_id), default=None)

    def last_below(self, session_id: str, below: int) -> int | None:
        """The highest number under this one."""
        return max(self._numbers("last_below", session_id, below=below), default=None)

    def packs(self, session_id: str) -> list[tuple[int, int]]:
        """The first and the last number of every pack."""
        return self._rows("packs", session=session_id)

    def count_doubles(self, session_id: str) -> int:
        """How many rows lie in the range of a pack, where there should be none."""
        return int((self._row("count_doubles", session=session_id) or (0,))[0])

    def _add_rows(self, page: "_Page", wanted: dict[str, Value], after: int, last: int) -> None:
        found = wanted | {"app": self._app, "after": after, "last": last, "limit": page.places}
        self._db.rows(self._q["rows"], found, lambda row: page.add(EventRow(*row)))

    def _numbers(self, name: str, session_id: str, **params: Value) -> list[int]:
        return [number for (number,) in self._rows(name, session=session_id, **params) if number is not None]

    def _row(self, name: str, **params: Value) -> tuple[Any, ...] | None:
        return self._db.row(self._q[name], {"app": self._app, **params})

    def _rows(self, name: str, **params: Value) -> list[tuple[Any, ...]]:
        return self._db.rows(self._q[name], {"app": self._app, **params})


class _Page:
    """What was taken so far, and how much more may come."""

    __slots__ = ("_bytes_left", "places", "rows")

    def __init__(self, limit: int, max_bytes: int) -> None:
        self.rows: list[EventRow] = []
        self.places = limit
        self._bytes_left = max_bytes

    def add(self, row: EventRow) -> bool:
        """Take it if it fits; whether it did. Nothing comes after what did not fit."""
        self._bytes_left -= len(row.data)
        if self.places <= 0 or (self._bytes_left < 0 and self.rows):
            self.places = 0
            return False
        self.rows.append(row)
        self.places -= 1
        return True
