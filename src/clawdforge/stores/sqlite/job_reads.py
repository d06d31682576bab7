"""What one job reads: a row that it has read is not read again before something of it is written.

Rules are plain functions that look up what they need, so the same session is asked for many times in one
transaction. Nobody else writes meanwhile, and the connection counts what it has changed.
"""

from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Any, TypeVar

from clawdforge.core.models.rows import AppRow, PauseRow, SessionRow, TurnRow
from clawdforge.stores.sqlite.rows import Value
from clawdforge.stores.sqlite.sets import HistorySets
from clawdforge.stores.sqlite.statements import Statements
from clawdforge.stores.sqlite.unwritten import Unwritten
from clawdforge.wire.errors import SessionNotFound

T = TypeVar("T")


class JobReads(HistorySets):
    def __init__(self, db: Statements, app: str) -> None:
        self._unwritten = Unwritten(db, app)
        super().__init__(self._unwritten, app)
        self._count_changes = db.count_changes
        self._found: dict[Hashable, Any] = {}
        self._found_at = -1
        self._of_app: dict[str, Any] = {}  # what no job of an app can change
        self._stored: dict[str, tuple[Any, ...]] = {}  # sessions as they are in the database
        self._read: dict[str, tuple[tuple[Any, ...], SessionRow]] = {}  # what they were last read as
        self._sessions: dict[str, SessionRow] = {}  # the same with what waits to be written
        self._states: dict[str, tuple[int, int]] = {}
        self._known_at = -1

    def session(self, session_id: str) -> SessionRow | None:
        if not self._knows_sessions():
            self._forget_sessions()
        row = self._sessions.get(session_id)
        if row is not None:
            return row
        stored = self._stored.get(session_id)
        if stored is None:
            stored = self._read_session("session", session_id)
            if stored is None:
                return None
            self._stored[session_id] = stored
        read = self._read.get(session_id)
        if read is None or read[0] is not stored:
            read = self._read[session_id] = stored, self._q.session.read(stored)
        waiting = self._waiting_of(session_id, stored)
        row = self._q.session.change(read[1], waiting) if waiting else read[1]
        self._sessions[session_id] = row
        return row

    def turn(self, session_id: str, turn_index: int) -> TurnRow | None:
        key = ("turn", session_id, turn_index)
        return self._read_once(key, lambda: super(JobReads, self).turn(session_id, turn_index))

    def active_turn(self, session_id: str) -> TurnRow | None:
        return self._read_once(("active", session_id), lambda: super(JobReads, self).active_turn(session_id))

    def count_queued(self, session_id: str, policies: Collection[str] | None = None) -> int:
        if policies is not None:
            return super().count_queued(session_id, policies)
        return self._read_once(("queued", session_id), lambda: super(JobReads, self).count_queued(session_id))

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

    def _forget_found(self) -> None:
        """To be called by whoever has changed something that is not written yet."""
        self._found.clear()

    def _state(self, session_id: str) -> tuple[int, int]:
        """The number of the last event, and the fence. Raises SessionNotFound."""
        if not self._knows_sessions():
            self._forget_sessions()
        found = self._states.get(session_id)
        if found is None:
            row = self._sessions.get(session_id)
            if row is not None:
                found = row.head, row.fence
            else:
                stored = self._read_session("state", session_id)
                if stored is None:
                    raise SessionNotFound
                waiting: Mapping[str, Any] = self._unwritten.changed(session_id)
                found = int(waiting.get("head", stored[0])), int(waiting.get("fence", stored[1]))
            self._states[session_id] = found
        return found

    def _need_session(self, session_id: str) -> None:
        self._state(session_id)

    def _read_session(self, name: str, session_id: str) -> tuple[Any, ...] | None:
        """From the database, without what waits to be written."""
        queries = self._q.view if name == "session" else self._q.tx
        return self._unwritten.plain.row(queries[name], {"app": self.app, "session": session_id})

    def _waiting_of(self, session_id: str, stored: tuple[Any, ...]) -> Mapping[str, Value]:
        moved_at, waiting = self._unwritten.moved_at(session_id), self._unwritten.changed(session_id)
        if moved_at is None:
            return waiting
        return {**waiting, "updated_at": max(moved_at, self._q.session.pick(stored, "updated_at"))}

    def _gather(self, session_id: str, columns: Mapping[str, Value]) -> None:
        """Change a session that is there, at the end of the job."""
        self._unwritten.change(session_id, columns)
        self._sessions.pop(session_id, None)

    def _forget_sessions(self) -> None:
        self._stored.clear()
        self._sessions.clear()
        self._states.clear()
        self._known_at = self._unwritten.moves

    def _knows_sessions(self) -> bool:
        return self._known_at == self._unwritten.moves

    def _keep_sessions(self) -> None:
        """To be called by whoever has written what might have changed a session, but has not."""
        self._known_at = self._unwritten.moves

    def _keep_states(self) -> None:
        """To be called by whoever has written since they were known, but no head and no fence."""
        self._stored.clear()
        self._sessions.clear()
        self._known_at = self._unwritten.moves
