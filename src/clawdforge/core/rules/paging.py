"""Which messages make up the page that a reader asks for, and where the pages above and below it begin."""

from dataclasses import dataclass
from typing import Final, Literal

from clawdforge.core.models.rows import MessageRow
from clawdforge.core.ports import View

PAGE_BYTES: Final = 1 << 20
Kept = Literal["visible", "all"]
"""What a transcript shows: with archived messages or without them; those that were cut are in neither."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page lies: after a seq, before one, around one, or at the end (`before` None)."""

    kind: Literal["after", "before", "around"] = "after"
    seq: int | None = 0


@dataclass(frozen=True, slots=True)
class MessageSpan:
    """Messages that rise by seq. `previous` is the `before` of the page above, `next` the `after` of the one
    below; None where there is nothing more."""

    rows: list[MessageRow]
    previous: int | None
    next: int | None


def read_messages(view: View, session_id: str, place: Place, limit: int, show: Kept) -> MessageSpan:
    """A page of at most `limit` messages; at least one if there is one."""
    if place.kind == "before" or place.seq is None:
        return _read_before(view, session_id, place.seq, limit, show)
    if place.kind == "around":
        return _read_around(view, session_id, place.seq, limit, show)
    rows, is_more = view.message_page(
        session_id, after=place.seq, limit=limit, max_bytes=PAGE_BYTES, show=show
    )
    first = rows[0].seq if rows else place.seq + 1
    has_earlier = place.seq > 0 and view.has_message_before(session_id, first, show=show)
    return MessageSpan(rows, first if has_earlier else None, rows[-1].seq if is_more else None)


def _read_before(view: View, session_id: str, before: int | None, limit: int, show: Kept) -> MessageSpan:
    rows, is_more = view.message_page_before(
        session_id, before=before, limit=limit, max_bytes=PAGE_BYTES, show=show
    )
    if before is None:
        return MessageSpan(rows, rows[0].seq if is_more else None, None)
    last = rows[-1].seq if rows else max(before - 1, 0)
    has_later = view.has_message_after(session_id, last, show=show)
    return MessageSpan(rows, rows[0].seq if is_more else None, last if has_later else None)


def _read_around(view: View, session_id: str, seq: int, limit: int, show: Kept) -> MessageSpan:
    """Half of the page lies before it. Near the end more do, so that the page is full if it can be."""
    half = PAGE_BYTES // 2
    after = max(seq - 1, 0)
    below, is_later = view.message_page(
        session_id, after=after, limit=limit - limit // 2, max_bytes=half, show=show
    )
    above: list[MessageRow] = []
    if limit > len(below):
        above, _ = view.message_page_before(
            session_id, before=seq, limit=limit - len(below), max_bytes=half, show=show
        )
    room = limit - len(above)
    if is_later and room > len(below):
        below, is_later = view.message_page(session_id, after=after, limit=room, max_bytes=half, show=show)
    rows = above + below
    first = rows[0].seq if rows else seq
    has_earlier = view.has_message_before(session_id, first, show=show)
    return MessageSpan(rows, first if has_earlier else None, rows[-1].seq if is_later and rows else None)
