"""Live agents as a cache of limited size: the least recently used idle agent is put to sleep first."""

import asyncio
import logging
from dataclasses import dataclass, field

from clawdforge.core.ports import LiveAgent
from clawdforge.core.running.fair_slots import FairSlots

log = logging.getLogger(__name__)
CLOSE_SECS = 15.0
"""After this long an agent gives up its seat, even if its processes have not ended."""


@dataclass(eq=False)
class Seat:
    """One session's seat in the pool, with its agent once that is there."""

    app: str
    session_id: str
    agent: LiveAgent | None = None
    context: int = 0
    busy: bool = True
    used_at: float = field(default=0.0)
    ending: asyncio.Lock = field(default_factory=asyncio.Lock)


class AgentPool:
    """Gives out seats. A session keeps its seat, and its agent, until the room is needed."""

    def __init__(self, size: int, idle_secs: float) -> None:
        self._slots = FairSlots(size)
        self._idle_secs = idle_secs
        self._seats: dict[str, Seat] = {}
        self._closing: dict[str, asyncio.Task[None]] = {}

    @property
    def live(self) -> int:
        return sum(seat.agent is not None and seat.agent.alive for seat in self._seats.values())

    @property
    def waiting(self) -> int:
        return self._slots.waiting

    def try_take(self, app: str, session_id: str) -> Seat | None:
        """This session's idle seat, or a free one; None when it would have to wait."""
        seat = self._seats.get(session_id)
        if seat is not None:
            if seat.busy:
                return None
            seat.busy = True
            return seat
        if session_id in self._closing or not self._slots.try_take():
            return None
        return self._add(app, session_id)

    async def take(self, app: str, session_id: str) -> Seat:
        """Waits for room, in fair order; an idle agent of somebody else is put to sleep for it."""
        if session_id in self._closing:  # one home must never serve two processes
            await asyncio.wait({self._closing[session_id]})
        seat = self.try_take(app, session_id)
        if seat is not None:
            return seat
        self._make_room()
        await self._slots.take(app)
        return self._add(app, session_id)

    def give_back(self, seat: Seat, now: float) -> None:
        """The turn is over. The agent stays as long as nobody else needs the seat."""
        seat.busy, seat.used_at = False, now
        if seat.agent is None or not seat.agent.alive or self._slots.waiting:
            self._release(seat)

    async def end_agent(self, session_id: str) -> None:
        """End the session's agent now, whatever it does."""
        seat = self._seats.get(session_id)
        if seat is not None and seat.busy:
            await self.drop_agent(seat)
        elif seat is not None:
            self._release(seat)
        closing = self._closing.get(session_id)
        if closing is not None:
            await asyncio.wait({closing})

    def retire_agent(self, session_id: str) -> None:
        """Let an idle agent go whose memory no longer counts. One at work is replaced at its next turn."""
        seat = self._seats.get(session_id)
        if seat is not None and not seat.busy:
            self._release(seat)

    async def drop_agent(self, seat: Seat) -> None:
        """Returns when no agent is left, whoever is ending it: a home serves one at a time."""
        async with seat.ending:
            agent, seat.agent = seat.agent, None
            try:
                if agent is not None:
                    await agent.close()
            except BaseException:
                seat.agent = agent  # it may live on: whoever comes next tries again
                raise

    def sleep_idle(self, now: float) -> None:
        for seat in list(self._seats.values()):
            if not seat.busy and now - seat.used_at >= self._idle_secs:
                self._release(seat)
        if self._slots.waiting:  # the agent that was to make room is slow to end: choose another
            self._make_room()

    async def close(self) -> None:
        for seat in list(self._seats.values()):
            seat.busy = False
            self._release(seat)
        await self.wait_until_closed()

    async def wait_until_closed(self) -> None:
        while self._closing:
            await asyncio.wait(self._closing.values())

    def _add(self, app: str, session_id: str) -> Seat:
        seat = Seat(app, session_id)
        self._seats[session_id] = seat
        return seat

    def _make_room(self) -> None:
        idle = [seat for seat in self._seats.values() if not seat.busy]
        if idle and self._slots.taken >= self._slots.size:
            self._release(min(idle, key=lambda seat: seat.used_at))

    def _release(self, seat: Seat) -> None:
        """Take the seat out; its slot is free once its processes are gone."""
        if self._seats.get(seat.session_id) is seat:
            del self._seats[seat.session_id]
        task = asyncio.ensure_future(self._close(seat))
        self._closing[seat.session_id] = task
        task.add_done_callback(lambda _: self._closing.pop(seat.session_id, None))

    async def _close(self, seat: Seat) -> None:
        try:
            async with asyncio.timeout(CLOSE_SECS):
                await self.drop_agent(seat)
        except TimeoutError:
            log.exception("an agent did not end in time", extra={"session_id": seat.session_id})
        except OSError:
            log.exception("could not end the agent", extra={"session_id": seat.session_id})
        finally:
            self._slots.give_back()
