"""What a job has appended and changed of sessions but not written yet: one statement of each kind at its end.

Rules are plain functions: they append and change a session where it belongs, many times in one transaction.
A statement takes longer than all that is gathered here. Whatever might see it in the database comes through
this module too, and then it is written first.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from clawdforge.stores.sqlite.early_packs import LEAST, split
from clawdforge.stores.sqlite.lasting import Lasting, tables_in
from clawdforge.stores.sqlite.packs import EventRow
from clawdforge.stores.sqlite.queries import Queries
from clawdforge.stores.sqlite.rows import Value
from clawdforge.stores.sqlite.statements import NewEvents, Statements
from clawdforge.stores.sqlite.stored_bytes import add_event_bytes
from clawdforge.wire.base import Micros
from clawdforge.wire.errors import SessionNotFound

GATHERED: Final = frozenset(
    {
        *("head", "holder", "fence", "written", "folder", "home_at", "last_turn", "turn_count"),
        *(
            "last_turn_at",
            "activity",
            "last_outcome",
            "title",
            "redo",
            "queue_order",
            "context",
            "context_plan",
        ),
        *("agent_session_id", "total_input_tokens", "total_output_tokens", "input_tokens"),
        *("output_tokens", "cached_tokens", "cost_usd", "estimated_cost_usd"),
    }
)
"""Columns of a session that wait. No trigger touches them, and none of the fragments below looks at them."""

BLIND: Final = re.compile(
    r"\(SELECT (?:session_id|cut_from|cut_to|cut_turns|archived_to) FROM sessions"
    r" WHERE session_id = :session(?: AND app_name = :app AND deleted_at IS (?:NOT )?NULL)?\)"
)
"""Parts of statements that look at a session, but at nothing that waits."""

SEEING: Final = re.compile(r"(?<![.:\w])(?:sessions|session_heads|events|packs|session_bytes|app_bytes)\b")
SEEING_TURNS: Final = re.compile(r"(?<![.:\w])(?:turns|turn_files)\b")
COUNTED: Final = re.compile(r"(?<![.:\w])messages\b")
"""Whoever writes messages makes triggers count them in their session."""
READING: Final = re.compile(r"(?:\s|--[^\n]*\n)*SELECT\b")
KNOWN: Final = 4096


class Sight(NamedTuple):
    """What a statement has to do with sessions and their logs."""

    sees: bool  # it reads or writes what may wait here
    moves: bool  # it may change a row of a session
    sees_turns: bool
    writes: bool
    lasting: tuple[str, ...]  # tables that it may change, of those that hardly anybody changes


@lru_cache(KNOWN)
def look_at(sql: str) -> Sight:
    text = BLIND.sub("", sql)
    sees = SEEING.search(text) is not None
    writes = READING.match(text) is None
    moves = writes and (sees or COUNTED.search(text) is not None)
    lasting = tables_in(text) if writes else ()
    return Sight(sees, moves, SEEING_TURNS.search(text) is not None, writes, lasting)


class Unwritten:
    """The statements of one job of one app, and what waits for its end."""

    def __init__(self, db: Statements, app: str, lasting: Lasting) -> None:
        self.lasting = lasting
        self.plain = db
        """For whoever knows what waits, and looks at that too."""
        self.queries: Queries = db.queries
        self.unpack: Callable[[int, int, int, bytes], tuple[EventRow, ...]] = db.unpack
        self.moves = 0  # grows when a row of a session may have changed
        self.changes = 0  # grows with every statement that may write
        self._app = app
        self._sessions: dict[str, dict[str, Value]] = {}  # columns as they are written
        self._moved: dict[str, Micros] = {}  # when each log was last appended to
        self._events: list[NewEvents] = []
        self._turns: dict[tuple[str, int], dict[str, Value]] = {}  # new ones, with all their columns

    def rows(
        self, sql: str, params: dict[str, Value], fits: Callable[[tuple[Any, ...]], bool] | None = None
    ) -> list[tuple[Any, ...]]:
        self._prepare(sql)
        return self.plain.rows(sql, params, fits)

    def row(self, sql: str, params: dict[str, Value]) -> tuple[Any, ...] | None:
        self._prepare(sql)
        return self.plain.row(sql, params)

    def run(self, sql: str, params: dict[str, Value]) -> int:
        self._prepare(sql)
        return self.plain.run(sql, params)

    def run_many(self, sql: str, params: Sequence[Mapping[str, Value]]) -> None:
        self._prepare(sql)
        self.plain.run_many(sql, params)

    def add_events(self, runs: Sequence[NewEvents]) -> None:
        self.write()
        self.changes += 1
        self.plain.add_events(runs)

    def _prepare(self, sql: str) -> None:
        sees, moves, sees_turns, writes, lasting = look_at(sql)
        if sees and self._sessions:
            self.write()
        elif sees_turns and self._turns:
            self._write_turns()
        if moves:
            self.moves += 1
        if writes:
            self.changes += 1
            if lasting:
                self.lasting.forget(lasting)

    def append(self, session_id: str, runs: Sequence[NewEvents], head: int, at: Micros) -> None:
        """Events that end with the number `head`."""
        self._events += runs
        self._moved[session_id] = max(at, self._moved.get(session_id, at))
        self._sessions.setdefault(session_id, {})["head"] = head

    def change(self, session_id: str, columns: Mapping[str, Value]) -> None:
        """Columns of a session that is there, all of them `GATHERED`."""
        self._sessions.setdefault(session_id, {}).update(columns)

    def add_turn(self, session_id: str, turn_index: int, columns: dict[str, Value]) -> None:
        self._turns[session_id, turn_index] = columns

    def has_turns(self) -> bool:
        return bool(self._turns)

    def turn(self, session_id: str, turn_index: int) -> dict[str, Value] | None:
        """The columns of one that waits, which may be changed."""
        return self._turns.get((session_id, turn_index))

    def changed(self, session_id: str) -> Mapping[str, Value]:
        """What waits of a session."""
        return self._sessions.get(session_id, {})

    def moved_at(self, session_id: str) -> Micros | None:
        return self._moved.get(session_id)

    def write(self) -> None:
        """Write all that waits."""
        if self._turns:
            self._write_turns()
        if self._events:
            runs, self._events = self._events, []
            self._write_events(runs)
        for session_id, columns in self._sessions.items():
            self._write_session(session_id, columns, self._moved.get(session_id))
        if self._sessions:
            self._sessions.clear()
            self._moved.clear()
            self.moves += 1

    def _write_events(self, runs: list[NewEvents]) -> None:
        """Those in packs are counted by a trigger, as small as they are there."""
        is_much = self.queries.packs_early and sum([len(run.data) for run in runs]) >= LEAST
        packs, rows = split(runs) if is_much else ((), runs)
        for pack in packs:
            self.plain.run(self.queries.packs["add_pack"], {"app": self._app, **pack})
        if rows:
            self.plain.add_events(rows)
            sizes: dict[str, int] = {}
            for run in rows:
                sizes[run.session_id] = sizes.get(run.session_id, 0) + sum(map(len, run.data))
            for session_id, size in sizes.items():
                add_event_bytes(self.plain, self._app, session_id, size)

    def _write_turns(self) -> None:
        turns = list(self._turns.values())
        self._turns.clear()
        for columns in turns:
            self.plain.run(self.queries.turn.insert, columns)

    def _write_session(self, session_id: str, columns: Mapping[str, Value], moved_at: Micros | None) -> None:
        values: dict[str, Value] = {"app": self._app, "session": session_id, **columns}
        if moved_at is not None:
            values["at"] = moved_at
        for sql in self.queries.set_session(tuple(columns), moved_at is not None):
            if self.plain.run(sql, values) == 0:
                raise SessionNotFound
