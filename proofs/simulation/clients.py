"""The clients of the simulated server: each does its requests one after another and checks every answer."""

import asyncio
from collections.abc import Awaitable, Callable

from clawdforge.core.models.rows import TurnRow
from clawdforge.core.services.all import Services
from clawdforge.stores.sqlite.view import SqliteView
from clawdforge.wire.errors import ForgeAPIError, NotFound, SessionNotFound, Unavailable
from clawdforge.wire.event import EventType
from clawdforge.wire.session import ForkRequest, Guarded, RedoRequest, RetryRequest, UndoRequest
from clawdforge.wire.turn import DecideRequest, Decision, IfBusy, TurnRequest, TurnState
from proofs.simulation.agent import DEFIANT
from proofs.simulation.plans import APPS, Op
from proofs.simulation.story import Ack, Known, Reader, Story, Submitted
from proofs.simulation.world import World

MOST_SESSIONS = 5
PATIENCE_SECS = 0.3


class Clients:
    """All clients of one life of the server."""

    def __init__(self, world: World, story: Story, services: Services) -> None:
        self._world = world
        self._story = story
        self._services = services
        self.doing: dict[int, str] = {}

    async def run(self, number: int) -> None:
        """The requests of one client. After a crash it goes on; a prompt is sent again with its key."""
        ops = self._world.plan.clients[number]
        while self._story.cursors[number] < len(ops):
            at = self._story.cursors[number]
            op = ops[at]
            if op.kind != "submit":
                self._story.cursors[number] += 1
            if op.pause:
                await asyncio.sleep(op.pause)
            if self._story.sessions:
                self.doing[number] = str(op)
                await self._ask(op, f"{number}.{at}")
            self._story.cursors[number] = at + 1
        self.doing.pop(number, None)

    async def _ask(self, op: Op, label: str) -> None:
        request = asyncio.create_task(self._answer(op, label), name=f"request {label}")
        await asyncio.wait({request}, timeout=op.hang_up)
        if not request.done():
            self._world.note("client", label, "hangs up on", op)
            request.cancel()
            await asyncio.wait({request})
        if not request.cancelled():
            request.result()

    async def _answer(self, op: Op, label: str) -> None:
        slot = op.session % len(self._story.sessions)
        known = self._story.sessions[slot]
        do: Callable[[Op, Known, str], Awaitable[object]] = getattr(self, f"_{op.kind}")
        self._world.note("client", label, "asks", op)
        try:
            result = await do(op, known, label)
        except ForgeAPIError as error:
            result = type(error).__name__
        except OSError as error:
            result = repr(error)
            if not any(fault.kind == "failed close" for fault in self._world.struck):
                self._world.violate(f"{op} ended with {error!r}")
        except Exception as error:  # no request may end like this
            self._world.violate(f"{op} ended with {error!r}")
            return
        self._world.note("client", label, "is answered:", result)

    async def _submit(self, op: Op, at: Known, label: str) -> object:
        prompt, key = f"p{label} {op.script}", f"key {label}"
        request = TurnRequest(prompt=prompt, if_busy=IfBusy(op.policy), expected_head=op.number or None)
        done = await self._services.turns.submit(at.app, at.session_id, request, key)
        index = done.turn.turn_index
        self._story.submitted.append(Submitted(at.session_id, key, prompt, index))
        makes_way = done.turn.if_busy in (IfBusy.INTERRUPT, IfBusy.ROLLBACK)
        if done.active is not None and makes_way and not done.replayed:
            self._need_ended(at, done.active, f"turn {index}, which interrupts it, was accepted")
        if op.flag:
            with self._services.turns.expect_answer(at.session_id, index):
                await self._services.turns.wait(at.app, at.session_id, index)
        return f"turn {index}"

    async def _wait(self, op: Op, at: Known, _label: str) -> object:
        return (await self._services.turns.wait(at.app, at.session_id, op.number)).outcome

    async def _cancel(self, op: Op, at: Known, _label: str) -> object:
        """What a client sees running, and then cancels, has ended when the cancel is answered."""
        state = await self._services.sessions.get(at.app, at.session_id)
        count = await self._services.turns.cancel(at.app, at.session_id, queued=op.flag)
        if state.running_turn is not None:
            self._need_ended(at, state.running_turn, f"a cancel was answered with {count}")
        return count

    async def _stop(self, op: Op, at: Known, _label: str) -> object:
        stopped = await self._services.turns.stop(at.app, at.session_id, op.number)
        self._need_ended(at, op.number, f"a stop was answered with {stopped}")
        return stopped

    async def _withdraw(self, op: Op, at: Known, _label: str) -> object:
        turn = await self._services.turns.withdraw(at.app, at.session_id, op.number)
        self._ack(at, turn.last_seq or 0, EventType.TURN_ENDED)
        return turn.outcome

    async def _undo(self, op: Op, at: Known, _label: str) -> object:
        request = UndoRequest(turns=op.number, files=op.flag)
        cut = await self._services.history.undo(at.app, at.session_id, request)
        self._ack(at, cut.moved.session.head, EventType.HISTORY_CUT)
        return cut.moved.turns

    async def _redo(self, op: Op, at: Known, _label: str) -> object:
        moved = await self._services.history.redo(at.app, at.session_id, RedoRequest(files=op.flag))
        self._ack(at, moved.session.head, EventType.HISTORY_RESTORED)
        return moved.turns

    async def _retry(self, op: Op, at: Known, _label: str) -> object:
        cut = await self._services.history.retry(
            at.app, at.session_id, RetryRequest(run=op.flag, files=op.number == 1)
        )
        self._ack(at, cut.moved.session.head, EventType.HISTORY_CUT)
        return cut.queued_turn and cut.queued_turn.turn_index

    async def _clear(self, _op: Op, at: Known, _label: str) -> object:
        cleared = await self._services.history.clear(at.app, at.session_id, Guarded())
        self._ack(at, cleared.session.head, EventType.HISTORY_CLEARED)
        return cleared.count

    async def _fork(self, op: Op, at: Known, _label: str) -> object:
        if len(self._story.sessions) >= MOST_SESSIONS:
            return "enough"
        request = ForkRequest(after_turn=op.number - 1 if op.flag else None)
        made = await self._services.forks.fork(at.app, at.session_id, request)
        self._story.sessions.append(Known(at.app, made.row.session_id))
        self._ack(self._story.sessions[-1], 1, EventType.SESSION_CREATED)
        return made.row.session_id

    async def _decide(self, op: Op, at: Known, _label: str) -> object:
        """Wait a little for a question, then answer the oldest."""
        loop = self._world.loop
        until = loop.time() + PATIENCE_SECS
        while not (found := await self._services.permissions.list(at.app, at.session_id, "pending")):
            if loop.time() > until:
                return "nothing to decide"
            await asyncio.sleep(0.01)
        decision = Decision.ALLOW_ONCE if op.flag else Decision.REJECT
        asked = found[0].permission_id
        row = await self._services.permissions.decide(
            at.app, at.session_id, asked, DecideRequest(decision=decision)
        )
        if asked in self._story.decided:
            self._world.violate("a permission was decided twice")
        self._story.decided[asked] = decision.value
        return row.decision

    async def _close(self, _op: Op, at: Known, _label: str) -> object:
        """No process of the agent is left when a close is answered, unless it will not end."""
        closed = await self._services.sessions.close(at.app, at.session_id)
        row = SqliteView(self._world.disk.db, at.app).session(at.session_id)
        lives = self._world.living.get(at.session_id) and not self._world.has_struck(*DEFIANT)
        if row is not None and row.closed_at is not None and lives:
            self._world.violate("the session is closed, and its agent still lives")
        return closed

    async def _reopen(self, _op: Op, at: Known, _label: str) -> object:
        return (await self._services.sessions.reopen(at.app, at.session_id)).row.closed_at

    async def _delete(self, _op: Op, at: Known, _label: str) -> object:
        await self._services.sessions.delete(at.app, at.session_id)
        self._story.deleted.add(at.session_id)
        return "deleted"

    async def _sweep(self, _op: Op, _at: Known, _label: str) -> object:
        return await self._services.sweeper.sweep()

    async def _read(self, _op: Op, at: Known, _label: str) -> object:
        events = await self._services.log.page(at.app, at.session_id, 0, 1000)
        if [event.seq for event in events] != list(range(1, len(events) + 1)):
            self._world.violate("a page of events has gaps")
        return len(events)

    async def _intrude(self, op: Op, at: Known, _label: str) -> object:
        """Whatever another app asks about this session, it is as if there were none."""
        other = APPS[1 - APPS.index(at.app)]
        services, session = self._services, at.session_id
        tries: tuple[Callable[[], Awaitable[object]], ...] = (
            lambda: services.sessions.get(other, session),
            lambda: services.turns.submit(other, session, TurnRequest(prompt="x done"), None),
            lambda: services.turns.cancel(other, session),
            lambda: services.history.undo(other, session, UndoRequest(files=op.flag)),
            lambda: services.forks.fork(other, session, ForkRequest()),
            lambda: services.sessions.close(other, session),
            lambda: services.turns.wait(other, session, 1),
            lambda: services.permissions.list(other, session),
            lambda: services.log.page(other, session, 0, 10),
        )
        try:
            await self._world.chance.choice(tries)()
        except (SessionNotFound, Unavailable) as error:
            return type(error).__name__
        except NotFound as error:
            self._world.violate(f"another app's session is told from an unknown one: {error!r}")
            return "seen"
        self._world.violate("another app's session was reached")
        return "reached"

    async def follow(self, reader: Reader) -> None:
        """Read on from where it stopped; hang up now and then."""
        known = self._story.sessions[reader.slot % len(self._story.sessions)]
        while not reader.is_over:
            follow = asyncio.create_task(self._follow(known, reader), name="reader")
            try:
                await asyncio.wait({follow}, timeout=self._world.chance.uniform(0.05, 5))
            finally:
                follow.cancel()
            await asyncio.wait({follow})
            if not follow.cancelled():
                follow.result()
            await asyncio.sleep(self._world.draw_delay())

    async def _follow(self, known: Known, reader: Reader) -> None:
        after = reader.copy[-1].seq if reader.copy else 0
        try:
            async for batch in self._services.log.follow(known.app, known.session_id, after):
                reader.copy += batch
                await asyncio.sleep(0)
            reader.is_over = True
        except SessionNotFound:
            reader.is_over = True
        except Unavailable:
            return

    def _need_ended(self, at: Known, index: int, because: str) -> None:
        turn = self._find_turn(at, index)
        if turn is not None and turn.state is not TurnState.ENDED:
            self._world.violate(f"{because}, but turn {index} is {turn.state.value}")
        elif turn is not None and turn.outcome is None:
            self._world.violate(f"turn {index} ended without an outcome")

    def _find_turn(self, at: Known, index: int) -> TurnRow | None:
        return SqliteView(self._world.disk.db, at.app).turn(at.session_id, index)

    def _ack(self, at: Known, seq: int, kind: EventType) -> None:
        self._story.acks.append(Ack(at.session_id, seq, kind.value))
