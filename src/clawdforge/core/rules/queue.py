"""In which order the queued turns of a session run: as somebody has put them, else as they came."""

from typing import Final

from clawdforge.core.model import SessionRow, TurnRow
from clawdforge.core.ports import View
from clawdforge.wire.turn import IfBusy

FIRST_IN_QUEUE: Final = frozenset({IfBusy.INTERRUPT, IfBusy.ROLLBACK})


def order_queue(view: View, session: SessionRow) -> list[int]:
    """The queued turns by their index, the next one first.

    Turns that interrupt, and automatic retries, go before all others, and the rest first come, first served.
    What somebody has put in an order stands between the two; a later prompt comes after it.
    """
    places = {index: place for place, index in enumerate(session.queue_order)}

    def find_place(entry: tuple[int, bool]) -> tuple[int, int]:
        index, goes_first = entry
        if index in places:
            return 1, places[index]
        return (0 if goes_first else 2), index

    return [index for index, _ in sorted(view.queue(session.session_id, FIRST_IN_QUEUE), key=find_place)]


def find_next(view: View, session: SessionRow) -> TurnRow | None:
    """The turn that is to run next."""
    if not session.queue_order:  # then one statement finds it, however long the queue is
        return view.next_queued(session.session_id, FIRST_IN_QUEUE)
    order = order_queue(view, session)
    return view.turn(session.session_id, order[0]) if order else None


def leave_queue(session: SessionRow, turn_index: int) -> tuple[int, ...]:
    """The order without a turn that has begun."""
    return tuple(index for index in session.queue_order if index != turn_index)
