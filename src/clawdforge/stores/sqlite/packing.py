"""Puts old events of one session into a pack: chosen from one state, put in place only if all is as it was.

Choosing and placing take one to three milliseconds each. Between them the events are compressed, which takes
several and is no work for the writer. Placing is one transaction: at any moment an event is in its row or in
a pack.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from typing import Any, TypeAlias

from clawdforge.stores.sqlite.event_pages import LOWEST
from clawdforge.stores.sqlite.packs import MAX_BYTES, MAX_EVENTS, ZLIB, EventRow, pack
from clawdforge.stores.sqlite.rows import Value
from clawdforge.stores.sqlite.statements import Statements


@dataclass(frozen=True, slots=True)
class Replaced:
    """A pack that is packed again with what is around it: one of a single commit, or the session's last other
    one when it is less than half full."""

    last: int
    packed: bytes
    rows: tuple[EventRow, ...]


Piece: TypeAlias = EventRow | Replaced


@dataclass(frozen=True, slots=True)
class Slice:
    """Events of a session whose numbers follow one another: of packs, and loose ones, in their order."""

    session_id: str
    pieces: tuple[Piece, ...]

    @property
    def rows(self) -> tuple[EventRow, ...]:
        return tuple(row for piece in self.pieces for row in _rows_of(piece))

    @property
    def replaced(self) -> tuple[Replaced, ...]:
        return tuple(piece for piece in self.pieces if isinstance(piece, Replaced))

    def pack(self) -> bytes:
        return pack(self.rows)


def choose_slice(db: Statements, app: str, session_id: str, through: int) -> Slice | None:
    """The next events up to a number that can be packed together; None when there are none."""
    key: dict[str, Value] = {"app": app, "session": session_id}
    found = db.row(db.queries.packs["last_pack"], key)
    codec, first, last, packed, raw = found or (ZLIB, LOWEST, LOWEST, b"", MAX_BYTES)
    after = list(_read_pieces(db, app, session_id, last, through))
    pieces = _fitting(after, MAX_EVENTS, MAX_BYTES)
    if not pieces:
        return None
    count = last - first + 1
    if _first_of(pieces[0]) == last + 1 and count <= MAX_EVENTS // 2 and raw <= MAX_BYTES // 2:
        rest = _fitting(after, MAX_EVENTS - count, MAX_BYTES - raw)
        if rest:
            before = Replaced(last, packed, db.unpack(codec, first, last, packed))
            return Slice(session_id, (before, *rest))
    return Slice(session_id, tuple(pieces))


def place_pack(db: Statements, app: str, chosen: Slice, packed: bytes) -> bool:
    """Put the pack in place of its rows; False, and nothing is done, when they are not what they were."""
    key: dict[str, Value] = {"app": app, "session": chosen.session_id}
    rows, q = chosen.rows, db.queries.packs
    first, last = rows[0].seq, rows[-1].seq
    settled = db.row(q["last_pack"], key)
    before = [] if settled is None or settled[2] < first else [(settled[2], settled[3])]
    early = db.rows(q["early_packs"], key | {"after": first - 1, "last": last, "limit": MAX_EVENTS})
    there = before + [(each[2], each[3]) for each in early]
    if there != [(one.last, one.packed) for one in chosen.replaced]:
        return False
    loose = tuple(piece for piece in chosen.pieces if isinstance(piece, EventRow))
    if _read_loose(db, app, chosen.session_id, first - 1, last) != loose:
        return False
    for one in chosen.replaced:
        db.run(q["remove_pack"], key | {"last": one.last})
    if loose:
        db.run(q["remove_rows"], key | {"first": loose[0].seq, "last": loose[-1].seq})
    db.run(
        q["add_pack"],
        key
        | {
            "first": first,
            "last": last,
            "codec": ZLIB,
            "raw_bytes": sum(len(row.data) for row in rows),
            "data": packed,
        },
    )
    return True


def _read_pieces(db: Statements, app: str, session_id: str, after: int, last: int) -> Iterator[Piece]:
    """What can be packed, in order, with the packs of commits: enough for one pack, if there is as much."""
    count, room = 0, MAX_BYTES

    def fits(row: tuple[Any, ...]) -> bool:
        nonlocal count, room
        count, room = count + row[2] - row[1] + 1, room - row[4]
        return bool(count <= MAX_EVENTS and room >= 0)

    params: dict[str, Value] = {"app": app, "session": session_id, "after": after, "last": last}
    found = db.rows(db.queries.packs["early_packs"], params | {"limit": MAX_EVENTS}, fits)
    early: list[Piece] = [
        Replaced(end, packed, db.unpack(codec, first, end, packed)) for codec, first, end, packed, _ in found
    ]
    yield from merge(early, _read_loose(db, app, session_id, after, last), key=_first_of)


def _read_loose(db: Statements, app: str, session_id: str, after: int, last: int) -> tuple[EventRow, ...]:
    """Rows that can be packed, the first of them, as many as fit."""
    room = MAX_BYTES

    def fits(row: tuple[Any, ...]) -> bool:
        nonlocal room
        room -= len(row[4])
        return room >= 0

    params: dict[str, Value] = {"app": app, "session": session_id, "after": after, "last": last}
    limits: dict[str, Value] = {"limit": MAX_EVENTS, "most": MAX_BYTES}
    return tuple(EventRow(*row) for row in db.rows(db.queries.packs["loose_rows"], params | limits, fits))


def _fitting(pieces: Sequence[Piece], most: int, room: int) -> list[Piece]:
    """From the first of them on, as far as they follow one another and fit into one pack."""
    taken: list[Piece] = []
    expected = None
    for piece in pieces:
        rows = _rows_of(piece)
        most, room = most - len(rows), room - sum(len(row.data) for row in rows)
        if most < 0 or room < 0 or expected not in (None, rows[0].seq):
            break
        taken.append(piece)
        expected = rows[-1].seq + 1
    return taken


def _first_of(piece: Piece) -> int:
    return _rows_of(piece)[0].seq


def _rows_of(piece: Piece) -> tuple[EventRow, ...]:
    return piece.rows if isinstance(piece, Replaced) else (piece,)
