"""The newest events of a followed session, in memory for all its readers, and the signals of more."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Final

from clawdforge.core.models.events import StoredEvent
from clawdforge.core.models.rows import TurnRow
from clawdforge.core.models.stretches import Stretch, cut, join_events
from clawdforge.wire.event import EventType
from clawdforge.wire.event_forms import is_from_agent

TAIL_EVENTS: Final = 4096
TAIL_BYTES: Final = 1 << 18
"""As stored; with objects and what is made of them a tail takes six times as much. An agent that floods fills
half of it with one commit, and a reader whose place is gone reads from the store, which costs the most."""

READ_BYTES: Final = 3 << 14
"""As stored: so much a reader that is behind gets at once. An agent that floods says less in one pass."""
MOST_PAGES: Final = 4


class Tail:
    """Kept in stretches, as they were committed. Readers near the end find theirs by a look at a few."""

    def __init__(self) -> None:
        self.readers = 0
        self.gone = False
        self.added = asyncio.Event()
        self.turn_ended = asyncio.Event()
        self._stretches: deque[Stretch] = deque()
        self._pages: OrderedDict[int, list[Stretch]] = OrderedDict()
        self._events = 0
        self._bytes = 0

    def extend(self, events: Sequence[StoredEvent]) -> None:
        if self._stretches and self._stretches[-1].last + 1 != events[0].seq:
            self._clear()
        ended = False
        for stretch in cut(events):
            self._stretches.append(stretch)
            self._events += len(stretch.events)
            self._bytes += stretch.size
            ended = ended or EventType.TURN_ENDED in stretch.types
        while self._events > TAIL_EVENTS or self._bytes > TAIL_BYTES:
            oldest = self._stretches.popleft()
            self._events -= len(oldest.events)
            self._bytes -= oldest.size
        self.wake(ended=ended)

    def reset(self) -> None:
        """Drop everything: the store may hold events that were never announced, so readers look there."""
        self._clear()
        self.wake(ended=True)

    def wake(self, *, ended: bool) -> None:
        self.added.set()
        self.added = asyncio.Event()
        if ended:
            self.turn_ended.set()
            self.turn_ended = asyncio.Event()

    def find_turn(self, turn: TurnRow) -> list[StoredEvent] | None:
        """What the agent sent in a turn that has ended; None when not all of it is here."""
        found = None if turn.first_seq is None else self.events_after(turn.first_seq - 1)
        if not found or turn.last_seq is None or found[-1].seq < turn.last_seq:
            return None
        mine = (event for event in found if event.turn == turn.turn_index)
        return [event for event in mine if is_from_agent(event.type)]

    def events_after(self, after: int) -> list[StoredEvent] | None:
        """All that came after a cursor; None when the tail does not reach back that far."""
        found = self._find(after)
        return None if found is None else join_events(found)

    def read(self, after: int, most: int = READ_BYTES) -> list[Stretch] | None:
        """The same as it is sent to a reader, which comes again for the rest."""
        found = self._find(after)
        if not found:
            return found
        size = 0
        for count, stretch in enumerate(found):
            size += stretch.size
            if count and size > most:
                return found[:count]
        return found

    def page(self, after: int) -> list[Stretch] | None:
        """What another reader has just read from the store after this cursor: many resume at the same one."""
        return self._pages.get(after)

    def keep_page(self, after: int, page: list[Stretch]) -> None:
        self._pages[after] = page
        if len(self._pages) > MOST_PAGES:
            self._pages.popitem(last=False)

    def _find(self, after: int) -> list[Stretch] | None:
        if not self._stretches or self._stretches[0].first > after + 1:
            return None
        found: list[Stretch] = []
        for stretch in reversed(self._stretches):  # readers are near the end, and there may be many of both
            if stretch.last <= after:
                break
            found.append(stretch)
        if found:
            found[-1] = found[-1].after(after)
        return found[::-1]

    def _clear(self) -> None:
        self._stretches.clear()
        self._pages.clear()
        self._events = self._bytes = 0
