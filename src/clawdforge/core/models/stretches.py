"""A stretch of a log: events that follow one another, and what was made of them, once for all readers."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar, cast

from clawdforge.core.models.events import StoredEvent
from clawdforge.wire.event_bytes import nest_all
from clawdforge.wire.event_forms import Form, is_from_agent
from clawdforge.wire.json_bounds import LARGE_BYTES

STRETCH_BYTES: Final = 1 << 14
"""As stored. A stretch is kept as a whole, so a longer one would stay in memory for its last event."""
STRETCH_EVENTS: Final = 128

Made = TypeVar("Made")


class Stretch:
    """It never changes. A large event is alone in one."""

    __slots__ = ("_made", "events", "first", "last", "size", "turns", "types")

    def __init__(self, events: Sequence[StoredEvent]) -> None:
        self.events = events
        self.first, self.last = events[0].seq, events[-1].seq
        self.size = sum([len(event.data) for event in events])
        self.types = {event.type for event in events}
        self.turns = {event.turn for event in events}
        self._made: dict[tuple[object, Form], object] = {}

    @property
    def is_large(self) -> bool:
        return self.size > LARGE_BYTES and len(self.events) == 1

    def once(self, make: Callable[["Stretch", Form], Made], form: Form) -> Made:
        """What `make` makes of it in a form: whoever comes second gets what the first one made."""
        key = (make, form)
        if key not in self._made:
            self._made[key] = make(self, form)
        return cast("Made", self._made[key])

    def data(self, form: Form) -> list[bytes]:
        """Its events in a form."""
        if (
            form is Form.NESTED
            and all(map(is_from_agent, self.types))
            and {event.form for event in self.events} == {Form.COMPACT}
        ):
            return nest_all([(event.type, event.data) for event in self.events])
        return [event.make(form) for event in self.events]

    def after(self, seq: int) -> "Stretch":
        """The part of it that comes after an event in its middle. A log has no gaps."""
        return Stretch(self.events[seq - self.first + 1 :]) if seq >= self.first else self

    def of_turn(self, turn: int) -> "Stretch | None":
        """The part of it that belongs to a turn, which nearly always is all of it."""
        if self.turns == {turn}:
            return self
        mine = [event for event in self.events if event.turn == turn] if turn in self.turns else []
        return Stretch(mine) if mine else None


def cut(events: Sequence[StoredEvent]) -> Iterator[Stretch]:
    """All of them in stretches that are not too long."""
    begin = size = 0
    for place, event in enumerate(events):
        length = len(event.data)
        if place > begin and (size + length > STRETCH_BYTES or place - begin == STRETCH_EVENTS):
            yield Stretch(events[begin:place])
            begin, size = place, 0
        size += length
    if begin < len(events):
        yield Stretch(events[begin:])


def join_events(stretches: Sequence[Stretch]) -> list[StoredEvent]:
    return [event for stretch in stretches for event in stretch.events]
