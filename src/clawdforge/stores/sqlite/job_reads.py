"""What one job reads: a row that it has read is not read again before something of it is written.

Rules are plain functions that look up what they need, so the same session is asked for many times in one
transaction. Nobody else writes meanwhile, and `Unwritten` counts the statements that may change something.
"""

from collections.abc import Callable, Collection, Hashable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar

from clawdforge.core.models.budgets import BudgetRow, ReservationRow
from clawdforge.core.models.rows import AppRow, PauseRow, PermissionRow, SessionRow, TurnRow
from clawdforge.core.models.webhooks import EndpointRow
from clawdforge.stores.sqlite.lasting import Lasting
from clawdforge.stores.sqlite.rows import Value
from clawdforge.stores.sqlite.sets import HistorySets
from clawdforge.stores.sqlite.statements import Statements
from clawdforge.stores.sqlite.unwritten import Unwritten
from clawdforge.wire.errors import SessionNotFound

T = TypeVar("T")


class Around(NamedTuple):
    """What stands around a session in the database, and was read with it."""

    active: int | None  # the turn that runs or waits for an answer
    queued: int
    spoken: int  # the newest visible turn
    prompt: int | None  # the newest visible prompt, if it is pending


class JobReads(HistorySets):
    def __init__(self, db: Statements, app: str, lasting: Lasting | None = None) -> None:
        self._lasting = lasting or Lasting()
        self._unwritten = Unwritten(db, app, self._lasting)
        super().__init__(self._unwritten, app)
        self._found: dict[Hashable, Any] = {}
        self._found_at = 0
        self._said: dict[str, Around] = {}  # until a row is written
        self._running: dict[str, Around] = {}  # until a turn is added as well
        self._counted: dict[str, dict[str, int]] = {}  # columns that triggers have changed since
        self._stored: dict[str, SessionRow] = {}  # sessions as they are in the database
        self._sessions: dict[str, SessionRow] = {}  # the same with what waits to be written
        self._states: dict[str, tuple[int, int]] = {}
        self._known_at = -1

    def session(self, session_id: str) -> SessionRow | None:
        if self._known_at != self._unwritten.moves:
            self._forget_sessions()
        row = self._sessions.get(session_id)
        if row is not None:
            return row
        stored = self._stored.get(session_id)
        if stored is None:
            stored = self._read_whole(session_id)
            if stored is None:
                return None
            self._stored[session_id] = stored
        waiting = self._waiting_of(session_id, stored)
        row = self._q.session.change(stored, waiting) if waiting else stored
        self._sessions[session_id] = row
        return row

    def turn(self, session_id: str, turn_index: int) -> TurnRow | None:
        key = ("turn", session_id, turn_index)
        return self._read_once(key, lambda: super(JobReads, self).turn(session_id, turn_index))

    def _read_whole(self, session_id: str) -> SessionRow | None:
        """A session, with what stands around it."""
        found = self._read_session(self._q.session_read, session_id)
        if found is None:
            return None
        width = len(self._q.session.names)
        if len(found) > width:
            self._look_for_changes()
            self._said[session_id] = around = Around(*found[width:])
            if not self._unwritten.has_turns():
                self._running[session_id] = around
        return self._q.session.read(found[:width])

    def active_turn(self, session_id: str) -> TurnRow | None:
        self._look_for_changes()
        around = self._running.get(session_id)
        if around is not None and around.active is None:
            return None
        return self._read_once(("active", session_id), lambda: super(JobReads, self).active_turn(session_id))

    def count_queued(self, session_id: str, policies: Collection[str] | None = None) -> int:
        if policies is not None:
            return super().count_queued(session_id, policies)
        self._look_for_changes()
        if session_id in self._running:
            return self._running[session_id].queued
        return self._read_once(("queued", session_id), lambda: super(JobReads, self).count_queued(session_id))

    def last_spoken_turn(self, session_id: str, *, before: int | None = None) -> int:
        self._look_for_changes()
        if before is None and session_id in self._said:
            return self._said[session_id].spoken
        return super().last_spoken_turn(session_id, before=before)

    def pending_prompt(self, session_id: str) -> int | None:
        self._look_for_changes()
        if session_id in self._said:
            return self._said[session_id].prompt
        return super().pending_prompt(session_id)

    def app_row(self) -> AppRow | None:
        return self._lasting.find("apps", self.app, super().app_row)

    def pauses(self) -> list[PauseRow]:
        return list(self._lasting.find("pauses", self.app, super().pauses))

    def endpoints(self) -> list[EndpointRow]:
        return list(self._lasting.find("webhook_endpoints", self.app, super().endpoints))

    def budgets_for(self, token_id: str | None, session_ids: Collection[str]) -> list[BudgetRow]:
        sessions = tuple(session_ids)
        read = partial(super().budgets_for, token_id, sessions)
        return list(self._lasting.find("budgets", (self.app, token_id, sessions), read))

    def reservations(self, holder_id: str, turn_index: int) -> list[ReservationRow]:
        read = partial(super().reservations, holder_id, turn_index)
        return list(self._lasting.find("reservations", (self.app, holder_id, turn_index), read))

    def permissions(self, session_id: str, *, state: str | None = None) -> list[PermissionRow]:
        read = partial(super().permissions, session_id, state=state)
        if state != "pending":
            return read()
        some_wait = self._lasting.find("permissions", (self.app, session_id), lambda: bool(read()))
        return read() if some_wait else []

    def _last_message_id(self) -> int:
        return self._lasting.find("messages", self.app, super()._last_message_id)

    def _read_once(self, key: Hashable, read: Callable[[], T]) -> T:
        self._look_for_changes()
        if key not in self._found:
            self._found[key] = read()
        found: T = self._found[key]
        return found

    def _look_for_changes(self) -> None:
        """Whatever was written may be what was found."""
        changes = self._unwritten.changes
        if changes != self._found_at:
            self._found_at = changes
            self._found.clear()
            self._said.clear()
            self._running.clear()

    def _forget_turns(self) -> None:
        """To be called by whoever has added a turn that is not written yet."""
        self._found.clear()
        self._running.clear()

    def _state(self, session_id: str) -> tuple[int, int]:
        """The number of the last event, and the fence. Raises SessionNotFound."""
        if self._known_at != self._unwritten.moves:
            self._forget_sessions()
        found = self._states.get(session_id)
        if found is None:
            row = self._sessions.get(session_id)
            if row is not None:
                found = row.head, row.fence
            else:
                stored = self._read_session(self._q.tx["state"], session_id)
                if stored is None:
                    raise SessionNotFound
                waiting: Mapping[str, Any] = self._unwritten.changed(session_id)
                found = int(waiting.get("head", stored[0])), int(waiting.get("fence", stored[1]))
            self._states[session_id] = found
        return found

    def _need_session(self, session_id: str) -> None:
        self._state(session_id)

    def _read_session(self, sql: str, session_id: str) -> tuple[Any, ...] | None:
        """From the database, without what waits to be written."""
        return self._unwritten.plain.row(sql, {"app": self.app, "session": session_id})

    def _waiting_of(self, session_id: str, stored: SessionRow) -> Mapping[str, Value]:
        moved_at, waiting = self._unwritten.moved_at(session_id), self._unwritten.changed(session_id)
        if session_id in self._counted:
            waiting = {**waiting, **self._counted[session_id]}
        if moved_at is None:
            return waiting
        return {**waiting, "updated_at": max(moved_at, stored.updated_at)}

    def _gather(self, session_id: str, columns: Mapping[str, Value]) -> None:
        """Change a session that is there, at the end of the job."""
        self._unwritten.change(session_id, columns)
        self._sessions.pop(session_id, None)

    def _forget_sessions(self) -> None:
        self._stored.clear()
        self._counted.clear()
        self._sessions.clear()
        self._states.clear()
        self._known_at = self._unwritten.moves

    def head(self, session_id: str) -> int:
        return self._state(session_id)[0]

    def _knows_sessions(self) -> bool:
        return self._known_at == self._unwritten.moves

    def _keep_sessions(self) -> None:
        """To be called by whoever has written what might have changed a session, but has not."""
        self._known_at = self._unwritten.moves

    def _keep_states(self) -> None:
        """To be called by whoever has written since they were known, but no head and no fence."""
        self._stored.clear()
        self._counted.clear()
        self._sessions.clear()
        self._known_at = self._unwritten.moves
