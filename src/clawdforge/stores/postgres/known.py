"""Rows that a batch has read, as they are with what it has not written yet; each job can be undone."""

from collections.abc import Iterable
from typing import Any, Final

from clawdforge.stores.postgres.effects import Kind, columns_of
from clawdforge.stores.postgres.ordinary import FOLDER, Answer, Found, Key, keys_of
from clawdforge.stores.postgres.texts import to_postgres
from clawdforge.stores.sqlite.queries import Queries
from clawdforge.stores.sqlite.rows import Value
from clawdforge.wire.disk import DiskForm
from clawdforge.wire.turn import TurnState

ALL: Final = ""
"""In the place of a session: rows that may be of any."""
SAID: Final = ("content", "thinking", "tool_calls", "plan")
"""Columns of a message whose bytes are counted."""
FORMS: Final = tuple(DiskForm)


class Known:
    def __init__(self, queries: Queries) -> None:
        self._q = queries
        self._rows: dict[Key, Found] = {}
        self._by_table: dict[tuple[str, str], set[Key]] = {}
        self._nothing: dict[str, tuple[tuple[str, ...], set[tuple[Any, ...]]]] = {}
        self._before: list[tuple[Key, Found | None]] = []

    def find(self, sql: str, params: dict[str, Value]) -> Found | None:
        found = self._rows.get((sql, tuple(params.items())))
        if found is None and sql in self._nothing:
            names, values = self._nothing[sql]
            return [] if tuple(params.get(name) for name in names) in values else None
        return found

    def learn(self, answer: Answer) -> None:
        """What was read of a session before anything of it was changed here."""
        _, session = answer.found[0]
        is_whole = answer.found[0][0].sql == self._q.view["session"]
        folder = self._q.session.pick(session, FOLDER) if is_whole and session else None
        for key, found, part in keys_of(answer, folder):
            if part.sql == self._q.view["active_turn"] and found:
                index = found[0][self._q.turn.names.index("turn_index")]
                own = (("app", answer.app), ("session", answer.session_id), ("turn", index))
                self.keep((self._q.view["turn"], own), found, part.tables, answer.session_id)
            if any(name == "session" for name, _ in part.params):
                self.keep(key, found, part.tables, answer.session_id)
            elif key not in self._rows:  # it came with another session of the app
                self.keep(key, found, part.tables)
        values = {"app": answer.app, "session": answer.session_id, "holder": answer.session_id}
        for nothing in answer.nothing:
            key_names = self._nothing.setdefault(nothing.sql, (nothing.names, set()))
            key_names[1].add(tuple(values[name] for name in nothing.names))

    def keep(self, key: Key, found: Found, tables: Iterable[str], session_id: str = ALL) -> None:
        self._put(key, found)
        for table in tables:
            self._by_table.setdefault((table, session_id), set()).add(key)

    def begin_job(self) -> None:
        self._before.clear()

    def undo_job(self) -> None:
        for key, found in reversed(self._before):
            if found is None:
                self._rows.pop(key, None)
            else:
                self._rows[key] = found
        self._before.clear()

    def change(self, kind: Kind, tables: Iterable[str], app: str, params: dict[str, Value]) -> None:
        """What follows from a statement that waits: rows are changed with it, or no longer known."""
        session_id = str(params.get("session_id") or params.get("session") or ALL)
        own = (("app", app), ("session", session_id))
        changed = {} if kind is Kind.OTHER else self._follow(kind, own, app, params)
        places = (session_id, ALL) if session_id else (ALL,)
        for table in tables:
            for of in places:
                for key in self._by_table.get((table, of), ()):
                    if key in self._rows and key not in changed:
                        self._put(key, None)
        if kind is Kind.PERMISSION:
            self._nothing.pop(self._q.view["permissions_pending"], None)
        for key, found in changed.items():
            self._put(key, found)

    def _follow(
        self, kind: Kind, own: tuple[tuple[str, Any], ...], app: str, params: dict[str, Value]
    ) -> dict[Key, Found]:
        """The rows that are known after it too."""
        if kind is Kind.BYTES_ADDED:
            return self._follow_bytes(app, DiskForm.EVENTS, int(params["bytes"] or 0))
        if kind in (Kind.SESSION_CHANGED, Kind.HEAD_MOVED):
            return self._follow_session(own, params)
        last_id = (self._q.tx["last_message_id"], (("app", app),))
        found: dict[Key, Found] = {}
        if kind is Kind.AUDITED:
            found[self._q.system["audit_head"], ()] = [(params["number"], params["hash"])]
        elif kind is Kind.MESSAGE_ADDED:
            size = sum(len(str(to_postgres(params[name])).encode()) for name in SAID)
            found = self._follow_message(own, params) | self._follow_bytes(app, DiskForm.MESSAGES, size)
            found[last_id] = [(params["id"],)]
        elif kind is Kind.MESSAGE_CHANGED and last_id in self._rows:
            found[last_id] = self._rows[last_id]
        elif kind is Kind.TURN_ADDED:
            found = self._follow_flight(app, int(params["state"] != TurnState.ENDED.value))
        elif kind is Kind.TURN_CHANGED:
            has_ended = params.get("new_state") == TurnState.ENDED.value
            found = self._follow_turn(own, params) | self._follow_flight(app, -int(has_ended))
        return found

    def _follow_session(self, own: tuple[tuple[str, Any], ...], params: dict[str, Value]) -> dict[Key, Found]:
        columns = columns_of(params)
        whole, state, next_seq = self._keys_of_session(own)
        changed: dict[Key, Found] = {}
        if self._rows.get(whole):
            ((row),) = self._rows[whole]
            moved = params.get("at")
            before = self._q.session.pick(row, "updated_at")
            at = before if moved is None else max(before, moved)
            changed[whole] = [self._q.session.put(row, {**columns, "updated_at": at})]
        if self._rows.get(state):
            ((head, fence),) = self._rows[state]
            changed[state] = [(columns.get("head", head), columns.get("fence", fence))]
        if next_seq in self._rows:
            changed[next_seq] = self._rows[next_seq]  # no column that waits
        return changed

    def _keys_of_session(self, own: tuple[tuple[str, Any], ...]) -> tuple[Key, Key, Key]:
        return (self._q.view["session"], own), (self._q.tx["state"], own), (self._q.tx["next_seq"], own)

    def _follow_message(self, own: tuple[tuple[str, Any], ...], params: dict[str, Value]) -> dict[Key, Found]:
        """As the trigger counts a message that is added."""
        codec = self._q.session
        whole, state, next_seq = self._keys_of_session(own)
        seq = int(params["seq"] or 0)
        changed: dict[Key, Found] = {state: self._rows[state]} if state in self._rows else {}
        if self._rows.get(whole):
            ((row),) = self._rows[whole]
            shown = int(not params["cut"] and not params["archived"])
            last, count = max(codec.pick(row, "last_message"), seq), codec.pick(row, "message_count") + shown
            changed[whole] = [codec.put(row, {"last_message": last, "message_count": count})]
        if self._rows.get(next_seq):
            ((following,),) = self._rows[next_seq]
            changed[next_seq] = [(max(following, seq + 1),)]
        return changed

    def _follow_bytes(self, app: str, form: DiskForm, size: int) -> dict[Key, Found]:
        """As triggers sum up what an app has."""
        key = (self._q.view["stored_bytes"], (("app", app),))
        place = FORMS.index(form)
        rows = self._rows.get(key) or []
        return {key: [(*row[:place], row[place] + size, *row[place + 1 :]) for row in rows]} if rows else {}

    def _follow_turn(self, own: tuple[tuple[str, Any], ...], params: dict[str, Value]) -> dict[Key, Found]:
        """How many wait is the same when the one that runs is changed, unless it is to wait again."""
        active = self._rows.get((self._q.view["active_turn"], own))
        queued = (self._q.view["count_queued"], (*own, ("policies", None)))
        index = self._q.turn.names.index("turn_index")
        is_active = bool(active) and active[0][index] == params["turn"]  # type: ignore[index]  # it is not empty
        if queued in self._rows and is_active and params.get("new_state") != TurnState.QUEUED.value:
            return {queued: self._rows[queued]}
        return {}

    def _follow_flight(self, app: str, more: int) -> dict[Key, Found]:
        """How many turns of an app have not ended. One that has ended is not ended again."""
        key = (self._q.view["turns_in_flight"], (("app", app),))
        return {key: [(count + more,) for (count,) in self._rows[key]]} if key in self._rows else {}

    def _put(self, key: Key, found: Found | None) -> None:
        self._before.append((key, self._rows.get(key)))
        if found is None:
            self._rows.pop(key, None)
        else:
            self._rows[key] = found
