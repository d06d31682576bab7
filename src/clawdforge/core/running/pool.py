"""Live agents as a cache: at most so many processes, the least recently used idle one sleeps first."""

import asyncio
import logging
from dataclasses import dataclass, field

from clawdforge.core.ports import LiveAgent
from clawdforge.core.running.fair_slots import FairSlots

log = logging.getLogger(__name__)
CLOSE_SECS = 15.0
"""An agent that has not ended by then, kill and hunt included, must not keep its place from others."""


@dataclass(eq=False)
class Place:
    """One session's place in the pool, with its agent once that is there."""

    app: str
    session_id: str
    agent: LiveAgent | None = None
    context: int = 0
    busy: bool = True
    used_at: float = field(default=0.0)
    ending: asyncio.Lock = field(default_factory=asyncio.Lock)


class AgentPool:
    """Gives out places. A session keeps its place, and its agent, until the room is needed."""

    def __init__(self, size: int, idle_secs: float) -> None:
        self._slots = FairSlots(size)
        self._idle_secs = idle_secs
        self._places: dict[str, Place] = {}
        self._closing: dict[str, asyncio.Task[None]] = {}

    @property
    def live(self) -> int:
        return sum(place.agent is not None and place.agent.alive for place in self._places.values())

    @property
    def waiting(self) -> int:
        return self._slots.waiting

    def try_take(self, app: str, session_id: str) -> Place | None:
        """This session's idle place, or a free one; None when it would have to wait."""
        place = self._places.get(session_id)
        if place is not None:
            if place.busy:
                return None
            place.busy = True
            return place
        if session_id in self._closing or not self._slots.try_take():
            return None
        return self._add(app, session_id)

    async def take(self, app: str, session_id: str) -> Place:
        """Waits for room, in fair order; an idle agent of somebody else is put to sleep for it."""
        if session_id in self._closing:  # one home must never serve two processes
            await asyncio.wait({self._closing[session_id]})
        place = self.try_take(app, session_id)
        if place is not None:
            return place
        self._make_room()
        await self._slots.take(app)
        return self._add(app, session_id)

    def give_back(self, place: Place, now: float) -> None:
        """The turn is over. The agent stays as long as nobody else needs the place."""
        place.busy, place.used_at = False, now
        if place.agent is None or not place.agent.alive or self._slots.waiting:
            self._release(place)

    async def end(self, session_id: str) -> None:
        """End the session's agent now, whatever it does."""
        place = self._places.get(session_id)
        if place is not None and place.busy:
            await self.drop_agent(place)
        elif place is not None:
            self._release(place)
        closing = self._closing.get(session_id)
        if closing is not None:
            await asyncio.wait({closing})

    def retire(self, session_id: str) -> None:
        """Let an idle agent go whose memory no longer counts. One at work is replaced at its next turn."""
        place = self._places.get(session_id)
        if place is not None and not place.busy:
            self._release(place)

    async def drop_agent(self, place: Place) -> None:
        """Returns when no agent is left, whoever is ending it: a home serves one at a time."""
        async with place.ending:
            agent, place.agent = place.agent, None
            if agent is not None:
                await agent.close()

    def sleep_idle(self, now: float) -> None:
        for place in list(self._places.values()):
            if not place.busy and now - place.used_at >= self._idle_secs:
                self._release(place)
        if self._slots.waiting:  # the agent that was to make room takes its time: let another one
            self._make_room()

    async def close(self) -> None:
        for place in list(self._places.values()):
            place.busy = False
            self._release(place)
        await self.settled()

    async def settled(self) -> None:
        while self._closing:
            await asyncio.wait(self._closing.values())

    def _add(self, app: str, session_id: str) -> Place:
        place = Place(app, session_id)
        self._places[session_id] = place
        return place

    def _make_room(self) -> None:
        idle = [place for place in self._places.values() if not place.busy]
        if idle and self._slots.taken >= self._slots.size:
            self._release(min(idle, key=lambda place: place.used_at))

    def _release(self, place: Place) -> None:
        """Take the place out; its slot is free once its processes are gone."""
        if self._places.get(place.session_id) is place:
            del self._places[place.session_id]
        task = asyncio.ensure_future(self._close(place))
        self._closing[place.session_id] = task
        task.add_done_callback(lambda _: self._closing.pop(place.session_id, None))

    async def _close(self, place: Place) -> None:
        try:
            async with asyncio.timeout(CLOSE_SECS):
                await self.drop_agent(place)
        except TimeoutError:
            log.exception("an agent does not end", extra={"session_id": place.session_id})
        except OSError:
            log.exception("could not end the agent", extra={"session_id": place.session_id})
        finally:
            self._slots.give_back()
