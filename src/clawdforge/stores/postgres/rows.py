"""One app's rows in Postgres: as in SQLite, but for the search, and for what a session began with."""

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from clawdforge.core.clock import Clock
from clawdforge.core.models.rows import Hit
from clawdforge.stores.postgres.snippets import make_snippet
from clawdforge.stores.sqlite.rows import Value, to_json
from clawdforge.stores.sqlite.search import from_cursor, split_words, to_cursor
from clawdforge.stores.sqlite.statements import NewEvents, Statements
from clawdforge.stores.sqlite.system import SqliteSystemTx
from clawdforge.stores.sqlite.tx import SqliteTx
from clawdforge.stores.sqlite.view import SqliteView
from clawdforge.wire.base import to_iso

FIRST_LOOK: Final = 64
"""So many of the newest messages that have the words are looked at first, and then four times as many."""

MAX_RISE: Final = 2**30
"""The numbers of 8 billion claims of a session fit into its column."""


def choose_rise() -> int:
    return 1 + secrets.randbelow(MAX_RISE)


class PgView(SqliteView):
    def search(
        self, q: str, *, limit: int, cursor: str | None = None, session_id: str | None = None
    ) -> tuple[list[Hit], str | None]:
        words, is_prefix = split_words(q)
        span = next(iter(self._rows("ids_of_app")), None)
        if not words or span is None or (session_id is not None and self.session(session_id) is None):
            return [], None
        first, last = span
        if cursor is not None:
            last = min(last, from_cursor(cursor, int)[0] - 1)
        typed: dict[str, Value] = {"words": to_json(words), "is_prefix": int(is_prefix)}
        rows: list[tuple[Any, ...]] = []
        most = FIRST_LOOK
        while len(rows) <= limit:
            bounds: dict[str, Value] = {"first": first, "last": last, "session": session_id}
            ids = [one for (one,) in self._rows("search_candidates", **typed, **bounds, limit=most)]
            rows += self._rows("search", **typed, ids=to_json(ids), limit=limit + 1 - len(rows))
            if len(ids) < most:
                break
            last, most = ids[-1] - 1, 4 * most
        page = [Hit(*(*row[:-2], make_snippet(row[-2], words, is_prefix=is_prefix))) for row in rows[:limit]]
        return page, to_cursor(rows[limit - 1][-1]) if len(rows) > limit and page else None


class PgTx(PgView, SqliteTx):
    def __init__(self, db: Statements, app: str, clock: Clock, rise: Callable[[], int]) -> None:
        super().__init__(db, app, clock)
        self._choose_rise = rise

    def _rise(self) -> int:
        """By chance: a standby that took over without the last claim must not give its fence out again."""
        return self._choose_rise()

    def refresh_index(self) -> bool:
        return True  # a message is in the index from the moment it is written

    def write_changes(self) -> bool:
        """In one statement: nobody here needs to know the numbers."""
        self._unwritten.write()
        keys = self._touched.keys
        if keys:
            sessions, permissions = zip(*keys, strict=True)
            self._run(
                "put_changes",
                sessions=json.dumps(sessions),
                permissions=json.dumps(permissions),
                count=len(keys),
                at=self._clock.now(),
            )
        return bool(keys)

    def bring(self, session_id: str, *, after: int, last: int, turns: Sequence[int]) -> None:
        key: dict[str, Any] = {"app": self.app, "target": session_id}
        said = self._db.rows(self._q.sets["bring_messages"], {**key, "after": after, "last": last})
        self._bring(session_id, "message", [(row[0], _named(self._q.message.names, row)) for row in said])
        if turns:
            ran = self._db.rows(self._q.sets["bring_turns"], {**key, "turns": json.dumps(list(turns))})
            self._bring(session_id, "turn", [(row[0], _named(self._q.turn.names, row)) for row in ran])

    def _bring(self, session_id: str, what: str, rows: Sequence[tuple[int, Mapping[str, Any]]]) -> None:
        events = []
        for number, row in rows:
            turn = row["turn"] if what == "message" else row["turn_index"]
            at = to_iso(row["ts"] if what == "message" else row["queued_at"])
            kind = f"{what}.brought"
            told = to_json({"seq": number, "ts": at, "turn": turn, "type": kind, "row": row})
            events.append(NewEvents(session_id, number, turn, kind, 0, [told.encode()]))
        if events:
            self._db.add_events(events)


class PgSystemTx(SqliteSystemTx):
    def give_back_space(self) -> bool:
        return True  # Postgres does that by itself


def _named(names: Sequence[str], row: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(names, row[1:], strict=True))
