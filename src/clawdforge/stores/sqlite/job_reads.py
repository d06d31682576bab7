"""What one job reads: a row that it has read is not read again before something is written.

Rules are plain functions that look up what they need, so the same session is asked for many times in one
transaction. Nobody else writes meanwhile, and the connection counts what it has changed.
"""

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from clawdforge.core.model import AppRow, PauseRow, SessionRow, TurnRow
from clawdforge.stores.sqlite.sets import HistorySets
from clawdforge.stores.sqlite.statements import Statements
from clawdforge.wire.errors import SessionNotFound

T = TypeVar("T")


class JobReads(HistorySets):
    def __init__(self, db: Statements, app: str) -> None:
        super().__init__(db, app)
        self._count_changes = db.count_changes
        self._found: dict[Hashable, Any] = {}
        self._found_at = -1
        self._of_app: dict[str, Any] = {}  # what no job of an app can change
        self._states: dict[str, tuple[int, int]] = {}
        self._states_at = -1

    def session(self, session_id: str) -> SessionRow | None:
        return self._read_once(("session", session_id), lambda: super(JobReads, self).session(session_id))

    def turn(self, session_id: str, turn_index: int) -> TurnRow | None:
        key = ("turn", session_id, turn_index)
        return self._read_once(key, lambda: super(JobReads, self).turn(session_id, turn_index))

    def active_turn(self, session_id: str) -> TurnRow | None:
        return self._read_once(("active", session_id), lambda: super(JobReads, self).active_turn(session_id))

    def app_row(self) -> AppRow | None:
        if "row" not in self._of_app:
            self._of_app["row"] = super().app_row()
        row: AppRow | None = self._of_app["row"]
        return row

    def pauses(self) -> list[PauseRow]:
        if "pauses" not in self._of_app:
            self._of_app["pauses"] = super().pauses()
        return list(self._of_app["pauses"])

    def _read_once(self, key: Hashable, read: Callable[[], T]) -> T:
        changes = self._count_changes()
        if changes != self._found_at:
            self._found.clear()
            self._found_at = changes
        if key not in self._found:
            self._found[key] = read()
        found: T = self._found[key]
        return found

    def _state(self, session_id: str) -> tuple[int, int]:
        """The number of the last event, and the fence. Raises SessionNotFound."""
        if not self._knows_states():
            self._states.clear()
        found = self._states.get(session_id)
        if found is None:
            row = self._db.row(self._q.tx["state"], {"app": self.app, "session": session_id})
            if row is None:
                raise SessionNotFound
            found = self._states[session_id] = (int(row[0]), int(row[1]))
            self._keep_states()
        return found

    def _need_session(self, session_id: str) -> None:
        self._state(session_id)

    def _knows_states(self) -> bool:
        return self._states_at == self._count_changes()

    def _keep_states(self) -> None:
        """To be called by whoever has written since they were known, and knows what became of them."""
        self._states_at = self._count_changes()
