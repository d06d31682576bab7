"""The log service: pages of events, and following one: replay, then live, without a gap or a repeat.

A reader pulls by its cursor. What was committed lately lies in a short tail in memory, shared by all
readers of the session; whoever is further back reads from the store. A commit only wakes readers, so
a reader that does not read costs nothing but its cursor. Of a large event there is one copy for all who are
being sent it, however slowly they read.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar
from weakref import WeakValueDictionary

from clawdforge.core.models.events import StoredEvent
from clawdforge.core.models.rows import Commit
from clawdforge.core.models.stretches import Stretch, cut, join_events
from clawdforge.core.pacing.computing import Computing
from clawdforge.core.pacing.loop_turns import LoopTurns
from clawdforge.core.ports import Store, View
from clawdforge.core.tail import READ_BYTES, Tail
from clawdforge.wire.errors import InvalidRequest, SessionNotFound
from clawdforge.wire.event_forms import Form
from clawdforge.wire.json_bounds import LARGE_BYTES

Shaped = TypeVar("Shaped")
PAGE_BYTES = 1 << 20
SLICE_EVENTS = 100  # to read so many and to make the wanted form of them takes two milliseconds
SLICE_BYTES = 1 << 16
STREAM_BYTES = 1 << 14  # as stored; each follower that stands still holds what is sent of one such page


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

    def follow(self, app: str, session_id: str, after: int) -> AsyncGenerator[list[StoredEvent], None]:
        """Batches of events after a cursor, for ever; ends when the session is deleted, here or elsewhere."""
        return self._follow(app, session_id, after, Form.COMPACT, join_events)

    def follow_stretches(
        self, app: str, session_id: str, after: int, form: Form = Form.COMPACT
    ) -> AsyncGenerator[list[Stretch], None]:
        """The same in stretches, for whoever sends what is made of them once for all readers.

        Large ones are there in the wanted form already: to make it takes a moment, so a thread does it.
        """
        return self._follow(app, session_id, after, form, _as_they_are)

    async def _follow(
        self, app: str, session_id: str, after: int, form: Form, shape: Callable[[list[Stretch]], Shaped]
    ) -> AsyncGenerator[Shaped, None]:
        await self._store.read(app, lambda view: _check_cursor(view, session_id, after))
        handed: list[list[Stretch]] = []
        most = READ_BYTES // (3 if form is Form.NESTED else 1)  # what is sent of it is about as long, then
        with self.tail(session_id) as tail:
            while not tail.gone:
                added = tail.added
                batch = tail.read(after, most)
                if batch is None:
                    batch = await self._read(app, session_id, after, tail)
                if batch is None:
                    return
                if batch:
                    after = batch[-1].last
                    await self._prepare(app, batch, form)
                    handed.append(batch)
                    del batch  # or a reader that stands still would hold it here
                    yield shape(handed.pop())
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

    async def _read(self, app: str, session_id: str, after: int, tail: Tail) -> list[Stretch] | None:
        """None when the session is gone."""
        for step in range(2):
            if (page := tail.page(after)) is not None:
                return page
            shared = self._large.get((session_id, after + 1))
            if shared is not None:
                return [Stretch([shared])]
            if not step:
                await self._turns.slice(app)  # to catch up takes many; meanwhile another may have read it

        def work(view: View) -> list[StoredEvent] | None:
            found = view.events(session_id, after=after, limit=SLICE_EVENTS, max_bytes=STREAM_BYTES)
            return None if not found and view.session(session_id) is None else found

        batch = await self._store.read(app, work)
        if not batch:
            return None if batch is None else []
        page = list(cut([self._share(session_id, event) for event in batch]))
        if not any(stretch.is_large for stretch in page):
            tail.keep_page(after, page)
        return page

    def _share(self, session_id: str, event: StoredEvent) -> StoredEvent:
        if len(event.data) <= LARGE_BYTES:
            return event
        return self._large.setdefault((session_id, event.seq), event)

    async def _prepare(self, app: str, stretches: list[Stretch], form: Form) -> None:
        """What is short is made by whoever sends it first."""
        for stretch in stretches:
            if stretch.is_large:
                await self._convert(app, stretch.events, form)

    async def _convert(
        self, app: str, batch: Sequence[StoredEvent], form: Form, *, whole: bool = False
    ) -> None:
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


def _as_they_are(stretches: list[Stretch]) -> list[Stretch]:
    return stretches
