"""The log service: pages of events, and following one: replay, then live, without a gap or a repeat.

A reader pulls by its cursor. What was committed lately lies in a short tail in memory, shared by all
readers of the session; whoever is further back reads from the store. A commit only wakes readers, so
a reader that does not read costs nothing but its cursor. Of a large event there is one copy for all who are
being sent it, however slowly they read.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import partial
from weakref import WeakValueDictionary

from clawdforge.core.models.events import StoredEvent
from clawdforge.core.models.rows import Commit, TurnRow
from clawdforge.core.pacing.computing import Computing
from clawdforge.core.pacing.loop_turns import LoopTurns
from clawdforge.core.ports import Store, View
from clawdforge.wire.errors import InvalidRequest, SessionNotFound
from clawdforge.wire.event import EventType
from clawdforge.wire.event_forms import Form, is_from_agent
from clawdforge.wire.json_bounds import LARGE_BYTES

PAGE_EVENTS = 1000
PAGE_BYTES = 1 << 20
SLICE_EVENTS = 100  # to read so many and to make the wanted form of them takes two milliseconds
SLICE_BYTES = 1 << 16
STREAM_BYTES = 1 << 12  # as stored; each follower that stands still holds one such page, in both forms
TAIL_EVENTS = 4096
TAIL_BYTES = 1 << 17  # as stored; with objects and the nested form a tail takes six times as much


class Tail:
    """The newest events of one followed session, and the signals that something was added."""

    def __init__(self) -> None:
        self.readers = 0
        self.gone = False
        self.added = asyncio.Event()
        self.turn_ended = asyncio.Event()
        self._events: deque[StoredEvent] = deque()
        self._bytes = 0

    def extend(self, events: tuple[StoredEvent, ...]) -> None:
        if self._events and self._events[-1].seq + 1 != events[0].seq:
            self._events.clear()
            self._bytes = 0
        self._events.extend(events)
        self._bytes += sum(len(event.data) for event in events)
        while len(self._events) > TAIL_EVENTS or self._bytes > TAIL_BYTES:
            self._bytes -= len(self._events.popleft().data)
        self.wake(ended=any(event.type == EventType.TURN_ENDED for event in events))

    def reset(self) -> None:
        """Drop everything: the store may hold events that were never announced, so readers look there."""
        self._events.clear()
        self._bytes = 0
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
        """What came after a cursor; None when the tail does not reach back that far."""
        if not self._events or self._events[0].seq > after + 1:
            return None
        found: list[StoredEvent] = []
        for event in reversed(self._events):  # readers are near the end, and there may be many of both
            if event.seq <= after:
                break
            found.append(event)
        return found[::-1]


class LogService:
    """Reads and follows the events of sessions."""

    def __init__(self, store: Store, turns: LoopTurns, computing: Computing) -> None:
        self._store = store
        self._turns = turns
        self._tails: dict[str, Tail] = {}
        self._large: WeakValueDictionary[tuple[str, int], StoredEvent] = WeakValueDictionary()
        self._computing = computing
        store.listen(self._on_commit)
        if store.peers is not None:
            store.peers.heed(self._look_again)

    @property
    def readers(self) -> int:
        return sum(tail.readers for tail in self._tails.values())

    async def page(
        self, app: str, session_id: str, after: int, limit: int, form: Form = Form.COMPACT
    ) -> list[StoredEvent]:
        """It may end before `limit`, if it becomes large. It is read in slices."""
        found: list[StoredEvent] = []
        size = 0

        def work(view: View) -> list[StoredEvent]:
            start = found[-1].seq if found else after
            _check_cursor(view, session_id, start)
            return view.events(
                session_id, after=start, limit=min(limit - len(found), SLICE_EVENTS), max_bytes=SLICE_BYTES
            )

        while len(found) < limit and size < PAGE_BYTES:
            if found:
                await self._turns.slice(app)
            batch = await self._store.read(app, work)
            if not batch:
                break
            await self._convert(app, batch, form, whole=True)
            found += batch
            size += sum(len(event.data) for event in batch)
        return found

    async def follow(
        self, app: str, session_id: str, after: int, form: Form = Form.COMPACT
    ) -> AsyncIterator[list[StoredEvent]]:
        """Batches of events after a cursor, for ever; ends when the session is deleted, here or elsewhere.

        Large ones are there in the wanted form already: to make it takes a moment, so a thread does it.
        """
        await self._store.read(app, lambda view: _check_cursor(view, session_id, after))
        with self.tail(session_id) as tail:
            while not tail.gone:
                added = tail.added
                batch = tail.events_after(after)
                if batch is None:
                    batch = await self._read(app, session_id, after)
                if batch is None:
                    return
                if batch:
                    batch = batch[:SLICE_EVENTS]  # the others come with the next round
                    after = batch[-1].seq
                    await self._convert(app, batch, form)
                    yield batch
                else:
                    await added.wait()

    async def turn_pages(
        self,
        app: str,
        session_id: str,
        turn_index: int,
        form: Form = Form.COMPACT,
        recent: list[StoredEvent] | None = None,
    ) -> AsyncIterator[list[StoredEvent]]:
        """What the agent sent in one turn, a bounded page at a time.

        `recent` is all of it, if somebody has that already.
        """
        if recent is not None:
            for start in range(0, len(recent), SLICE_EVENTS):
                if start:
                    await self._turns.slice(app)
                batch = recent[start : start + SLICE_EVENTS]
                await self._convert(app, batch, form)
                yield batch
            return
        after = 0
        while True:
            if after:
                await self._turns.slice(app)
            batch = await self._store.read(
                app,
                lambda view, after=after: view.turn_events(  # type: ignore[misc]
                    session_id, turn_index, after=after, limit=SLICE_EVENTS, max_bytes=SLICE_BYTES
                ),
            )
            if not batch:
                return
            after = batch[-1].seq
            await self._convert(app, batch, form)
            yield batch

    @contextmanager
    def tail(self, session_id: str) -> Iterator[Tail]:
        """Hold a session's tail while reading from it."""
        tail = self._tails.setdefault(session_id, Tail())
        tail.readers += 1
        try:
            yield tail
        finally:
            tail.readers -= 1
            if not tail.readers and self._tails.get(session_id) is tail:
                del self._tails[session_id]

    def end_readers(self, session_id: str) -> None:
        """End the readers of a session that was deleted, also those at other nodes."""
        tail = self._tails.get(session_id)
        if tail is not None:
            tail.gone = True
            tail.wake(ended=True)
        if self._store.peers is not None:
            self._store.peers.announce(session_id)

    def _look_again(self, session_id: str) -> None:
        """Another node says that a session has changed: whoever reads it finds out how."""
        tail = self._tails.get(session_id)
        if tail is not None:
            tail.reset()

    def _on_commit(self, commit: Commit) -> None:
        if not commit.session_id:
            for each in self._tails.values():
                each.reset()
            return
        tail = self._tails.get(commit.session_id)
        if tail is not None and commit.events:
            tail.extend(commit.events)
        elif tail is not None:
            tail.reset()

    async def _read(self, app: str, session_id: str, after: int) -> list[StoredEvent] | None:
        """None when the session is gone."""
        for step in range(2):
            shared = self._large.get((session_id, after + 1))
            if shared is not None:
                return [shared]
            if not step:
                await self._turns.slice(app)  # to catch up takes many; meanwhile another may have read it

        def work(view: View) -> list[StoredEvent] | None:
            found = view.events(session_id, after=after, limit=PAGE_EVENTS, max_bytes=STREAM_BYTES)
            return None if not found and view.session(session_id) is None else found

        batch = await self._store.read(app, work)
        return None if batch is None else [self._share(session_id, event) for event in batch]

    def _share(self, session_id: str, event: StoredEvent) -> StoredEvent:
        if len(event.data) <= LARGE_BYTES:
            return event
        return self._large.setdefault((session_id, event.seq), event)

    async def _convert(self, app: str, batch: list[StoredEvent], form: Form, *, whole: bool = False) -> None:
        """One after the other, and of large ones apps in turn: whoever comes second finds it done.

        Large ones are prepared for being sent in slices, unless they are needed as a `whole`.
        """
        for event in batch:
            if len(event.data) <= LARGE_BYTES:
                event.in_form(form)
            elif whole:
                await self._computing.run(app, partial(event.in_form, form))
            elif not event.is_prepared(form):
                await self._computing.run(app, partial(event.prepare, form))


def _check_cursor(view: View, session_id: str, after: int) -> None:
    session = view.session(session_id)
    if session is None:
        raise SessionNotFound
    if after > session.head:
        raise InvalidRequest(f"after is beyond the end of the log, which is {session.head}")
