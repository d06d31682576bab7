"""Live agents as a cache of limited size: the least recently used idle agent is put to sleep first."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from clawdforge.core.models.agents import Launch
from clawdforge.core.models.rows import SessionRow
from clawdforge.core.ports import LiveAgent
from clawdforge.core.running.early_sink import EarlySink
from clawdforge.core.running.fair_slots import FairSlots

log = logging.getLogger(__name__)
CLOSE_SECS = 15.0
"""After this long others may have the place of an agent that does not end; its own session still waits."""
TRY_AGAIN_SECS = (1.0, 60.0)
"""After a failed attempt to end an agent the next comes so soon; later ones twice as late, up to that."""
MOMENT_SECS = 2.0
"""An agent that was used within this time will probably be used again soon."""
BREAK_OFF_SECS = 0.5
"""A cancel may get lost while an agent is starting: after this long it is repeated."""


class Prepared(NamedTuple):
    """How an agent was started that no turn has needed yet."""

    launch: Launch
    sink: EarlySink


@dataclass(eq=False)
class Seat:
    """One session's seat in the pool, with its agent once that is there."""

    app: str
    session_id: str
    agent: LiveAgent | None = None
    context: int = 0
    model: str | None = None  # that the agent was started with
    untold: str = ""  # what it was to be told before its first prompt, until it has heard that
    busy: bool = True
    is_counted: bool = True  # among those that its app may have
    leaves: bool = False  # once no turn runs
    has_place: bool = True  # until its place is given back, which happens once
    used_at: float = field(default=0.0)
    ending: asyncio.Lock = field(default_factory=asyncio.Lock)
    is_spare: bool = False  # its session is still to come
    starting: asyncio.Task[None] | None = None  # of a spare
    prepared: Prepared | None = None  # until a turn takes the agent over
    first_of: SessionRow | None = None  # the session whose first turn runs
    arrived: SessionRow | None = None  # as it is since its workspace came from another node, in this turn


class AgentPool:
    """Gives out seats. A session keeps its seat, and its agent, until the room is needed."""

    def __init__(self, size: int, idle_secs: float) -> None:
        self._slots = FairSlots(size)
        self._idle_secs = idle_secs
        self._seats: dict[str, Seat] = {}
        self._closing: dict[str, asyncio.Task[None]] = {}
        self._leaving: set[Seat] = set()  # whose slots become free
        self._seen_at = 0.0  # the latest time that it was told of
        self._listeners: list[Callable[[SessionRow], None]] = []
        self._is_open = True

    def listen(self, listener: Callable[[SessionRow], None]) -> None:
        """It is told of each session in a folder of our own whose first turn went well and is over."""
        self._listeners.append(listener)

    @property
    def live(self) -> int:
        return sum(seat.agent is not None and seat.agent.alive for seat in self._seats.values())

    @property
    def taken(self) -> int:
        """How many places are not free: with an agent, for one that starts, or with one that is ending."""
        return self._slots.taken

    @property
    def free(self) -> int:
        """How many places are free, or have an agent that could be put to sleep, and are not waited for."""
        return self._slots.size - sum(seat.busy for seat in self._seats.values()) - self._slots.waiting

    @property
    def waiting(self) -> int:
        return self._slots.waiting

    def held(self, app: str) -> int:
        """How many of the places are this app's."""
        return self._slots.held(app)

    def limit(self, app: str, most: int | None) -> None:
        """How many agents of an app may live at the same time."""
        self._slots.limit(app, most)

    def try_take(self, app: str, session_id: str, parent: str | None = None) -> Seat | None:
        """This session's idle seat, or a free one; None when it would have to wait.

        The turn of `parent` may wait for this session's: so it needs no place among those of its app.
        """
        seat = self._seats.get(session_id)
        if seat is not None:
            if seat.busy:
                return None
            seat.busy = True
            return seat
        if session_id in self._closing:
            return None
        if self._slots.try_take(app):
            return self._add(app, session_id, is_counted=True)
        if self._is_busy(parent) and self._slots.try_take_beside(app):
            return self._add(app, session_id, is_counted=False)
        return None

    async def take(self, app: str, session_id: str, parent: str | None = None) -> Seat:
        """Waits for room, in fair order; an idle agent of somebody else is put to sleep for it.

        There is no bound: the turn is still in the queue, can be taken out of it, and is told of as one that
        stands still.
        """
        if session_id in self._closing:  # one home must never serve two processes
            await asyncio.wait({self._closing[session_id]})
        seat = self.try_take(app, session_id, parent)
        if seat is not None:
            return seat
        self._make_room(app, spares_poorer=not self._is_busy(parent))
        is_counted = await self._slots.take(app, beside=self._is_busy(parent))
        return self._add(app, session_id, is_counted=is_counted)

    def try_spare(self, app: str, session_id: str, now: float) -> Seat | None:
        """A seat for an agent whose session is still to come; None where somebody may need it before."""
        has_room = self._slots.taken + 1 < self._slots.size and not self._slots.waiting
        if not self._is_open or not has_room or not self._slots.try_take(app):
            return None
        seat = self._add(app, session_id, is_counted=True)
        seat.busy, seat.is_spare, seat.used_at = False, True, now
        return seat

    def has(self, seat: Seat) -> bool:
        return self._seats.get(seat.session_id) is seat

    def give_back(self, seat: Seat, now: float, *, failed: bool = False) -> None:
        """The turn is over. The agent stays as long as nobody else needs the seat, and the pool is open.

        A turn that failed is no use of it: an agent with which every turn fails goes to sleep all the same.
        """
        seat.busy = False
        self._seen_at = max(self._seen_at, now)
        if not failed or not seat.used_at:
            seat.used_at = now
        is_of_use = self.has(seat) and seat.is_counted and seat.agent is not None and seat.agent.alive
        own = sum(one.app == seat.app and one.is_counted for one in self._leaving)
        if not is_of_use or seat.leaves or self._slots.is_wanted(seat.app, self._count_leaving(), own):
            self._release(seat)
        first, seat.first_of = seat.first_of, None
        if first is not None and not failed:
            for listener in self._listeners:
                listener(first)

    async def end_agent(self, session_id: str) -> bool:
        """End the session's agent now, whatever it does. False if it may live on after `CLOSE_SECS`."""
        seat = self._seats.get(session_id)
        if seat is not None and seat.busy:
            return await self._drop_within(seat, CLOSE_SECS)
        if seat is not None:
            self._release(seat)
        closing = self._closing.get(session_id)
        if closing is not None:
            await asyncio.wait({closing}, timeout=CLOSE_SECS)
        return closing is None or closing.done()

    def retire_agent(self, session_id: str) -> None:
        """Let an agent go whose memory no longer counts, or whom nobody asks soon: now, or after its turn."""
        seat = self._seats.get(session_id)
        if seat is not None and seat.busy:
            seat.leaves = True
        elif seat is not None:
            self._release(seat)

    def retire_all(self) -> None:
        """Let all agents go: now, or after what they do."""
        for session_id in list(self._seats):
            self.retire_agent(session_id)

    def has_seat(self, session_id: str) -> bool:
        return session_id in self._seats or session_id in self._closing

    async def drop_agent(self, seat: Seat) -> None:
        """Returns when no agent is left, whoever is ending it: a home serves one at a time."""
        async with seat.ending:
            while seat.starting is not None and not seat.starting.done():
                seat.starting.cancel()
                await asyncio.wait({seat.starting}, timeout=BREAK_OFF_SECS)
            seat.prepared = None
            agent, seat.agent = seat.agent, None
            try:
                if agent is not None:
                    await agent.close()
            except BaseException:
                seat.agent = agent  # it may live on: whoever comes next tries again
                raise

    def sleep_idle(self, now: float) -> None:
        self._seen_at = max(self._seen_at, now)
        for seat in list(self._seats.values()):
            if not seat.busy and now - seat.used_at >= self._idle_secs:
                self._release(seat)
        for app in self._slots.apps_waiting:  # the agent that was to make room is slow to end: choose another
            self._make_room(app, spares_poorer=not self._slots.has_beside(app), is_again=True)

    async def close(self) -> None:
        self._is_open = False
        for seat in list(self._seats.values()):
            seat.busy = False
            self._release(seat)
        if self._closing:  # one that does not end must not keep the server from ending
            await asyncio.wait(self._closing.values(), timeout=CLOSE_SECS)

    def _is_busy(self, session_id: str | None) -> bool:
        seat = None if session_id is None else self._seats.get(session_id)
        return seat is not None and seat.busy

    def _add(self, app: str, session_id: str, *, is_counted: bool) -> Seat:
        seat = Seat(app, session_id, is_counted=is_counted)
        self._seats[session_id] = seat
        return seat

    def _make_room(self, app: str, *, spares_poorer: bool, is_again: bool = False) -> None:
        """Put idle agents to sleep, its own first where it has too many, if that is enough for a seat.

        An app whose agents are all idle may have to give them all back: one that has none gets a place that
        is kept from others. An app that has fewer keeps the agents that it used a moment ago, also when this
        is tried again: else each of its turns would start an agent, for one that has more than its share and
        can wait for its own. A sub-session cannot: its parent's turn may be waiting for it.
        """
        most = self._slots.held_soon(app, self._count_leaving())

        def may_go(seat: Seat) -> bool:
            is_poorer = self._slots.held(seat.app) < most
            is_in_use = not seat.is_spare and seat.used_at > self._seen_at - MOMENT_SECS
            return not seat.busy and not (spares_poorer and is_poorer and is_in_use)

        idle = [seat for seat in self._seats.values() if may_go(seat)]
        idle.sort(key=lambda seat: (not seat.is_spare, seat.used_at))
        mine = [seat for seat in idle if seat.app == app]
        excess = self._slots.excess(app)
        coming = 0 if is_again else max(0, len(self._leaving) - self._slots.waiting)
        for giving in (excess, len(mine)):
            own = mine[:giving]
            others = [seat for seat in idle if seat not in own]
            lacking = max(0, self._slots.lacking(app, len(own)) - coming)
            if len(own) >= excess and lacking <= len(others):
                for seat in [*own, *others[:lacking]]:
                    self._release(seat)
                return

    def _count_leaving(self) -> Counter[str]:
        """How many of each app's places become free."""
        return Counter(seat.app for seat in self._leaving)

    def _release(self, seat: Seat) -> None:
        """Take the seat out; its slot is free once its processes are gone.

        This may come twice: a stop of the server takes seats away from turns that do not end, and these give
        theirs back later, perhaps with an agent that was started meanwhile.
        """
        if self.has(seat):
            del self._seats[seat.session_id]
        if seat.has_place:
            self._leaving.add(seat)
        task = asyncio.ensure_future(self._close(seat))
        self._closing[seat.session_id] = task
        task.add_done_callback(partial(self._on_closed, seat.session_id))

    def _on_closed(self, session_id: str, task: asyncio.Task[None]) -> None:
        if self._closing.get(session_id) is task:
            del self._closing[session_id]
        failure = None if task.cancelled() else task.exception()
        if failure is not None:
            log.error("the end of an agent failed", exc_info=failure, extra={"session_id": session_id})

    async def _close(self, seat: Seat) -> None:
        """Returns when the agent has ended. Until then its home is its own, but others may have its place."""
        ending = asyncio.ensure_future(self._end(seat))
        try:
            await asyncio.wait({ending}, timeout=CLOSE_SECS)
            if not ending.done():
                log.error("an agent did not end in time", extra={"session_id": seat.session_id})
        finally:
            if seat.has_place:
                seat.has_place = False
                self._leaving.discard(seat)
                self._slots.give_back(seat.app, counted=seat.is_counted)
        await ending

    async def _end(self, seat: Seat) -> None:
        """Try until the agent has ended: an attempt that failed says nothing about what is left of it."""
        wait, longest = TRY_AGAIN_SECS
        while not await self._drop_within(seat, None):
            await asyncio.sleep(wait)
            wait = min(2 * wait, longest)

    async def _drop_within(self, seat: Seat, secs: float | None) -> bool:
        """Whether the agent ended in this time. When it did not, the attempt goes on, unless it failed."""
        attempt = asyncio.ensure_future(self.drop_agent(seat))
        await asyncio.wait({attempt}, timeout=secs)
        failure = attempt.exception() if attempt.done() else None
        if failure is not None:
            log.error("the end of an agent failed", exc_info=failure, extra={"session_id": seat.session_id})
        return attempt.done() and failure is None
