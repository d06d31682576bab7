"""An app's changes: what readers of a list have to look at again, numbered in the order of commits."""

from collections.abc import Sequence
from typing import Final

from clawdforge.core.models.events import Draft
from clawdforge.core.ports.changes import ChangeBounds, ChangeRow
from clawdforge.stores.sqlite.own_rows import OwnRows
from clawdforge.stores.sqlite.rows import Value
from clawdforge.stores.sqlite.statements import Statements
from clawdforge.wire.base import Micros
from clawdforge.wire.event import LISTED

ITSELF: Final = ""
"""In the place of a permission's id: the change is the session's own."""


class ChangeRows(OwnRows):
    """What can be read."""

    def change_bounds(self) -> ChangeBounds:
        return ChangeBounds(*next(iter(self._rows("change_bounds")), (0, 0)))

    def changes(self, *, after: int, limit: int) -> list[ChangeRow]:
        rows = self._rows("changes", after=after, limit=limit)
        return [ChangeRow(number, session_id, permission or None) for number, session_id, permission in rows]


class Touched:
    """What one transaction has changed for those who read lists. Each is numbered once, at its end."""

    def __init__(self) -> None:
        self._keys: dict[tuple[str, str], None] = {}
        self._revealed: set[str] = set()

    @property
    def keys(self) -> list[tuple[str, str]]:
        """Sessions, and permissions of them, in the order in which they are numbered."""
        return list(self._keys)

    def note_events(self, session_id: str, drafts: Sequence[Draft]) -> None:
        """What an agent says, and most of what is said about it, no list shows."""
        if not LISTED.isdisjoint([draft.type for draft in drafts]):
            self.note(session_id)

    def note(self, session_id: str, permission_id: str = ITSELF) -> None:
        self._keys[session_id, permission_id] = None

    def note_revealed(self, session_id: str) -> None:
        self._revealed.add(session_id)
        self.note(session_id)

    def note_deleted(self, session_id: str) -> None:
        """One that was revealed for a moment only, in this transaction, was never seen."""
        if session_id in self._revealed:
            self._keys = {key: None for key in self._keys if key[0] != session_id}
        else:
            self.note(session_id)

    def write(self, db: Statements, app: str, at: Micros) -> bool:
        """Number the changes; whether there were any."""
        for session_id, permission_id in self._keys:
            values: dict[str, Value] = {"session": session_id, "permission": permission_id, "app": app}
            db.run(db.queries.tx["put_change"], {**values, "at": at})
        return bool(self._keys)


def forget_changes(db: Statements, app: str, before: Micros, limit: int) -> bool:
    """Forget the first ones that are older, in their order; True when the next is not."""
    key: dict[str, Value] = {"app": app, "limit": limit}
    rows = db.rows(db.queries.tx["first_changes"], key)
    old = [number for number, at in rows if at < before]
    if old:
        through: dict[str, Value] = {"app": app, "through": max(old)}
        db.run(db.queries.tx["forget_changes"], through)
        db.run(db.queries.tx["move_forgotten"], through)
    return len(old) < limit
