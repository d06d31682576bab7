"""In which order the queued turns of a session run: as somebody has put them, else as they came."""

from collections.abc import Iterable, Sequence
from typing import Final

from clawdforge.core.models.rows import SessionRow, TurnRow
from clawdforge.core.ports import View
from clawdforge.wire.turn import IfBusy

FIRST_IN_QUEUE: Final = frozenset({IfBusy.INTERRUPT, IfBusy.ROLLBACK})


def order_queue(view: View, session: SessionRow) -> list[int]:
    """The queued turns by their index, the next one first.

    Turns that interrupt, and automatic retries, go before all others, and the rest first come, first served.
    What somebody has put in an order stands between the two; a later prompt comes after it.
    """
    return put_in_order(view.queue(session.session_id, FIRST_IN_QUEUE), session.queue_order)


def put_in_order(waiting: Iterable[tuple[int, bool]], wanted: Sequence[int]) -> list[int]:
    """`waiting` are turns and whether each goes before all others; `wanted` is what somebody has ordered."""
    places = {index: place for place, index in enumerate(wanted)}

    def find_place(entry: tuple[int, bool]) -> tuple[int, int]:
        index, goes_first = entry
        if index in places:
            return 1, places[index]
        return (0 if goes_first else 2), index

    return [index for index, _ in sorted(waiting, key=find_place)]


def move_turn(order: Sequence[int], turn_index: int, position: int) -> list[int]:
    """The order with this turn in its place; behind the last if there are not so many."""
    others = [index for index in order if index != turn_index]
    return [*others[:position], turn_index, *others[position:]]


def find_next(view: View, session: SessionRow) -> TurnRow | None:
    """The turn that is to run next."""
    if not session.queue_order:  # then one statement finds it, however long the queue is
        return view.next_queued(session.session_id, FIRST_IN_QUEUE)
    order = order_queue(view, session)
    return view.turn(session.session_id, order[0]) if order else None


def leave_queue(session: SessionRow, turn_index: int) -> tuple[int, ...]:
    """The order without a turn that has begun."""
    return tuple(index for index in session.queue_order if index != turn_index)
