"""What the doctor asks of a database, whichever app a session belongs to: logs, and counts of messages."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

from clawdforge.core.model import MessageRow, TurnRow
from clawdforge.stores.sqlite.connection import Db
from clawdforge.stores.sqlite.rows import Value
from clawdforge.wire.base import Json
from clawdforge.wire.event import EventType

PAGE: Final = 500


@dataclass(frozen=True, slots=True)
class Counts:
    """What a session counts: messages that it shows, turns that were started, and the last of each."""

    messages: int
    last_message: int
    turns: int
    last_turn: int


class Inspection:
    def __init__(self, db: Db) -> None:
        self._db = db
        self._q = db.queries.inspection

    def sessions(self) -> list[tuple[str, str]]:
        """App and id of every session that is not deleted."""
        return [(str(app), str(session_id)) for app, session_id in self._db.rows(self._q["sessions"], {})]

    def span_of_log(self, session_id: str) -> tuple[int, int | None, int | None]:
        """How many events a session has, and the numbers of the first and the last."""
        count, first, last = self._db.row(self._q["span_of_log"], {"session": session_id}) or (0, None, None)
        return count, first, last

    def turns_of(self, session_id: str, kind: EventType) -> list[int | None]:
        """The turns of all events of one type."""
        rows = self._db.rows(self._q["turns_of"], {"session": session_id, "type": kind})
        return [turn for (turn,) in rows]

    def count_brought(self, session_id: str) -> tuple[int, int | None]:
        """How many events tell what a session began with, and the number of the lowest."""
        count, lowest = self._db.row(self._q["count_brought"], {"session": session_id}) or (0, None)
        return count, lowest

    def own_events(self, session_id: str) -> Iterator[tuple[int, Json]]:
        """The server's own events from the first on, by their numbers."""
        after = 0
        while page := self._page("own_events", session_id, after=after):
            after = page[-1][0]
            yield from ((seq, json.loads(data)) for seq, data in page)

    def brought(self, session_id: str) -> Iterator[tuple[int, MessageRow | TurnRow]]:
        """The messages and turns that a session began with, by the numbers of their events."""
        below = 1
        while page := self._page("brought", session_id, below=below):
            below = page[-1][0]
            yield from ((seq, self._read_row(kind, data)) for seq, kind, data in page)

    def brought_message(self, session_id: str, number: int) -> MessageRow:
        """The message that one of these events tells of."""
        return self._db.queries.message.read_named(self.event(session_id, number)["row"])

    def event(self, session_id: str, number: int) -> Json:
        """An event by its number. It is one of our own, so any JSON is kept as it was."""
        row = self._db.row(self._q["event"], {"session": session_id, "seq": number})
        return json.loads(row[0]) if row else {}

    def column_values(self, row: MessageRow | TurnRow) -> dict[str, Value]:
        """A row as the database has it: two are the same if these are."""
        if isinstance(row, MessageRow):
            return self._db.queries.message.values(row)
        return self._db.queries.turn.values(row)

    def counted(self, session_id: str) -> Counts | None:
        """What the session itself says."""
        found = self._db.row(self._q["counted"], {"session": session_id})
        return None if found is None else Counts(*found)

    def count_messages(self, session_id: str) -> tuple[int, int]:
        """How many messages it shows, and the highest number among all that it has."""
        visible, last = self._db.row(self._q["count"], {"session": session_id}) or (0, 0)
        return visible, last

    def set_counted(self, session_id: str, counts: Counts) -> None:
        self._db.run(self._q["set_counted"], {"session": session_id, **asdict(counts)})

    def _page(self, name: str, session_id: str, **params: Value) -> list[tuple[Any, ...]]:
        return self._db.rows(self._q[name], {"session": session_id, "limit": PAGE, **params})

    def _read_row(self, kind: str, data: bytes) -> MessageRow | TurnRow:
        event = json.loads(data)
        if kind == EventType.TURN_BROUGHT:
            return self._db.queries.turn.read_named(event["row"])
        return self._db.queries.message.read_named(event["row"])
