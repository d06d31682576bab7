"""What the doctor asks of a database, whichever app a session belongs to: logs, and counts of messages."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final

from clawdforge.core.models.rows import MessageRow, TurnRow
from clawdforge.stores.sqlite.connection import Db
from clawdforge.stores.sqlite.event_pages import LOWEST, EventPages
from clawdforge.stores.sqlite.packs import EventRow
from clawdforge.stores.sqlite.rows import Value
from clawdforge.wire.base import Json
from clawdforge.wire.event import EventType

PAGE: Final = 500
PAGE_BYTES: Final = 1 << 22
ALL_BYTES: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Counts:
    """What a session counts: messages that it shows, turns that were started, and the last of each."""

    messages: int
    last_message: int
    turns: int
    last_turn: int


def list_sessions(db: Db) -> list[tuple[str, str]]:
    """App and id of every session that is not deleted."""
    rows = db.rows(db.queries.inspection["sessions"], {})
    return [(str(app), str(session_id)) for app, session_id in rows]


class Inspection:
    """The sessions of one app."""

    def __init__(self, db: Db, app: str) -> None:
        self._db = db
        self._q = db.queries.inspection
        self._pages = EventPages(db, app)

    def read_log(self, session_id: str) -> Iterator[EventRow]:
        """Every event that readers see, from the first on."""
        return self._walk(session_id, None)

    def find_wrong_packs(self, session_id: str) -> Iterator[str]:
        """What would keep an event from being in one place, and one place only. The log was read whole."""
        before = LOWEST
        for first, last in self._pages.packs(session_id):
            if first <= before:
                yield f"two packs hold its event {first}"
            before = last
        if doubles := self._pages.count_doubles(session_id):
            yield f"{doubles} of its events are in a pack and beside it"

    def count_brought(self, session_id: str) -> tuple[int, int | None]:
        """How many events tell what a session began with, and the number of the lowest."""
        count = sum(1 for _ in self._walk_down(session_id))
        return count, self._pages.lowest(session_id) if count else None

    def own_events(self, session_id: str) -> Iterator[tuple[int, Json]]:
        """The server's own events from the first on, by their numbers."""
        return ((row.seq, json.loads(row.data)) for row in self._walk(session_id, 0))

    def brought(self, session_id: str) -> Iterator[tuple[int, MessageRow | TurnRow]]:
        """The messages and turns that a session began with, by the numbers of their events."""
        return ((row.seq, self._read_row(row)) for row in self._walk_down(session_id))

    def brought_message(self, session_id: str, number: int) -> MessageRow:
        """The message that one of these events tells of."""
        return self._db.queries.message.read_named(self.event(session_id, number)["row"])

    def event(self, session_id: str, number: int) -> Json:
        """An event by its number. It is one of our own, so any JSON is kept as it was."""
        page = self._pages.page(session_id, after=number - 1, last=number, limit=1, max_bytes=1)
        return json.loads(page[0].data) if page else {}

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

    def _walk(self, session_id: str, by_agent: int | None) -> Iterator[EventRow]:
        after = 0
        while page := self._pages.page(
            session_id, after=after, limit=PAGE, max_bytes=PAGE_BYTES, by_agent=by_agent
        ):
            after = page[-1].seq
            yield from page

    def _walk_down(self, session_id: str) -> Iterator[EventRow]:
        """What a session began with stands below its log, the first of it highest."""
        below = 1
        while (last := self._pages.last_below(session_id, below)) is not None:
            below = last - PAGE + 1
            yield from reversed(
                self._pages.page(session_id, after=below - 1, last=last, limit=PAGE, max_bytes=ALL_BYTES)
            )

    def _read_row(self, row: EventRow) -> MessageRow | TurnRow:
        event = json.loads(row.data)
        if row.type == EventType.TURN_BROUGHT:
            return self._db.queries.turn.read_named(event["row"])
        return self._db.queries.message.read_named(event["row"])
