"""What the doctor asks of a database, whichever app a session belongs to: logs, and counts of messages."""

from clawdforge.stores.sqlite.connection import Db
from clawdforge.wire.event import EventType


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

    def data_of(self, session_id: str, kind: EventType) -> list[bytes]:
        """The contents of all events of one type."""
        rows = self._db.rows(self._q["data_of"], {"session": session_id, "type": kind})
        return [data for (data,) in rows]

    def counted(self, session_id: str) -> tuple[int, int] | None:
        """How many messages the session says that it shows, and the number of its last."""
        found = self._db.row(self._q["counted"], {"session": session_id})
        return None if found is None else (found[0], found[1])

    def count(self, session_id: str) -> tuple[int, int]:
        """How many messages it does show, and the highest number among all that it has."""
        visible, last = self._db.row(self._q["count"], {"session": session_id}) or (0, 0)
        return visible, last

    def set_counted(self, session_id: str, visible: int, last: int) -> None:
        self._db.run(self._q["set_counted"], {"session": session_id, "visible": visible, "last": last})
