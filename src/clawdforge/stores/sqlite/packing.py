"""Puts old events of one session into a pack: chosen from one state, put in place only if all is as it was.

Choosing and placing take a millisecond each. Between them the events are compressed, which takes several and
is no work for the writer. Placing is one transaction: at any moment an event is in its row or in a pack.
"""

from dataclasses import dataclass
from itertools import accumulate, takewhile
from typing import Any

from clawdforge.stores.sqlite.event_pages import LOWEST
from clawdforge.stores.sqlite.packs import MAX_BYTES, MAX_EVENTS, ZLIB, EventRow, pack
from clawdforge.stores.sqlite.rows import Value
from clawdforge.stores.sqlite.statements import Statements


@dataclass(frozen=True, slots=True)
class Replaced:
    """The session's last pack, when it is less than half full: it is packed again with what follows."""

    last: int
    packed: bytes
    rows: tuple[EventRow, ...]


@dataclass(frozen=True, slots=True)
class Slice:
    """Events of a session whose numbers follow one another: those of its last pack, and then loose ones."""

    session_id: str
    replaced: Replaced | None
    loose: tuple[EventRow, ...]

    @property
    def rows(self) -> tuple[EventRow, ...]:
        return (self.replaced.rows if self.replaced else ()) + self.loose

    def pack(self) -> bytes:
        return pack(self.rows)


def choose_slice(db: Statements, app: str, session_id: str, through: int) -> Slice | None:
    """The next events up to a number that can be packed together; None when there are none."""
    found = db.row(db.queries.packs["last_pack"], {"app": app, "session": session_id})
    codec, first, last, packed, raw = found or (ZLIB, LOWEST, LOWEST, b"", MAX_BYTES)
    loose = _read_loose(db, app, session_id, last, through)
    if not loose:
        return None
    count = last - first + 1
    if loose[0].seq == last + 1 and count <= MAX_EVENTS // 2 and raw <= MAX_BYTES // 2:
        rest = _fitting(loose, MAX_EVENTS - count, MAX_BYTES - raw)
        if rest:
            return Slice(session_id, Replaced(last, packed, db.unpack(codec, first, last, packed)), rest)
    return Slice(session_id, None, loose)


def place_pack(db: Statements, app: str, chosen: Slice, packed: bytes) -> bool:
    """Put the pack in place of its rows; False, and nothing is done, when they are not what they were."""
    key: dict[str, Value] = {"app": app, "session": chosen.session_id}
    rows, replaced, q = chosen.rows, chosen.replaced, db.queries.packs
    first_loose, last_loose = chosen.loose[0].seq, chosen.loose[-1].seq
    last_pack = db.row(q["last_pack"], key)
    if replaced is not None and (last_pack is None or last_pack[2:4] != (replaced.last, replaced.packed)):
        return False
    if replaced is None and last_pack is not None and last_pack[2] >= first_loose:
        return False
    if _read_loose(db, app, chosen.session_id, first_loose - 1, last_loose) != chosen.loose:
        return False
    if replaced is not None:
        db.run(q["remove_pack"], key | {"last": replaced.last})
    db.run(q["remove_rows"], key | {"first": first_loose, "last": last_loose})
    db.run(
        q["add_pack"],
        key
        | {
            "first": rows[0].seq,
            "last": last_loose,
            "codec": ZLIB,
            "raw_bytes": sum(len(row.data) for row in rows),
            "data": packed,
        },
    )
    return True


def _read_loose(db: Statements, app: str, session_id: str, after: int, last: int) -> tuple[EventRow, ...]:
    """Rows that can be packed, from the first of them on, as far as they follow one another and fit."""
    room, expected = MAX_BYTES, None

    def fits(row: tuple[Any, ...]) -> bool:
        nonlocal room, expected
        room -= len(row[4])
        follows, expected = expected in (None, row[0]), row[0] + 1
        return follows and room >= 0

    params: dict[str, Value] = {"app": app, "session": session_id, "after": after, "last": last}
    limits: dict[str, Value] = {"limit": MAX_EVENTS, "most": MAX_BYTES}
    return tuple(EventRow(*row) for row in db.rows(db.queries.packs["loose_rows"], params | limits, fits))


def _fitting(rows: tuple[EventRow, ...], most: int, room: int) -> tuple[EventRow, ...]:
    sizes = accumulate(len(row.data) for row in rows[:most])
    return rows[: sum(1 for _ in takewhile(lambda size: size <= room, sizes))]
