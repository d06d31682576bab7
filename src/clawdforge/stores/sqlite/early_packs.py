"""What a commit brings at once of one session is written as a pack, where it is enough for one.

A row with its entry in the index takes ten times the room of what an agent says, and two fifths of the bytes
that are written for it. A person who talks to an agent sees rows: what comes by itself is few at a time.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from clawdforge.stores.sqlite.packs import EARLY, EARLY_LEVEL, MAX_BYTES, MAX_EVENTS, EventRow, compress
from clawdforge.stores.sqlite.rows import Value
from clawdforge.stores.sqlite.statements import NewEvents

LEAST: Final = 8
"""Events of one pack. Fewer take less to write as they are."""
COMPACT: Final = 1


class Split(NamedTuple):
    """Packs, as the statement that adds one takes them, and events that stay rows."""

    packs: list[dict[str, Value]]
    rows: list[NewEvents]


def split(runs: Sequence[NewEvents]) -> Split:
    found = Split([], [])
    for stretch in _find_stretches(runs):
        if sum([len(run.data) for run in stretch]) < LEAST:
            found.rows.extend(stretch)
            continue
        session_id = stretch[0].session_id
        for rows in _cut(stretch):
            if len(rows) < LEAST:
                found.rows.extend(NewEvents(session_id, *row[:4], [row.data]) for row in rows)
            else:
                found.packs.append(_pack(session_id, rows))
    return found


def _find_stretches(runs: Sequence[NewEvents]) -> Iterator[list[NewEvents]]:
    """Runs of one session whose numbers follow one another."""
    stretch: list[NewEvents] = []
    following = 0
    for run in runs:
        if stretch and not (stretch[-1].session_id == run.session_id and run.first == following):
            yield stretch
            stretch = []
        stretch.append(run)
        following = run.first + len(run.data)
    if stretch:
        yield stretch


def _cut(stretch: Sequence[NewEvents]) -> Iterator[list[EventRow]]:
    """As many as fit into a pack."""
    rows: list[EventRow] = []
    size = 0
    for run in stretch:
        for seq, data in enumerate(run.data, run.first):
            if rows and not (size + len(data) <= MAX_BYTES and len(rows) < MAX_EVENTS):
                yield rows
                rows, size = [], 0
            rows.append(EventRow(seq, run.turn, run.type, run.by_agent, data, COMPACT))
            size += len(data)
    yield rows


def _pack(session_id: str, rows: Sequence[EventRow]) -> dict[str, Value]:
    return {
        "session": session_id,
        "first": rows[0].seq,
        "last": rows[-1].seq,
        "codec": EARLY,
        "raw_bytes": sum(len(row.data) for row in rows),
        "data": compress(rows, EARLY_LEVEL),
    }
