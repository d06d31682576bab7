"""Agents that do what their prompt says: say, ask, then end well, die, hang or be deaf to a cancel."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from clawdforge.core.models.agents import AgentSpec, Answer, Ask, Launch
from clawdforge.core.models.events import AgentEvent
from clawdforge.core.ports import Capability, Sink
from clawdforge.core.running.pool import CLOSE_SECS
from clawdforge.drivers.processes.process import has_failed
from clawdforge.wire.errors import AgentFailed, AgentStartFailed
from clawdforge.wire.event import EventType
from proofs.simulation.world import World

SPEC = AgentSpec(name="sim", driver="sim", command=("sim",))
OPTIONS = (
    {"optionId": "yes", "kind": "allow_once"},
    {"optionId": "always", "kind": "allow_always"},
    {"optionId": "no", "kind": "reject_once"},
)
STUCK_SECS = 12.0
STUCK_CLOSE_SECS = 1.5 * CLOSE_SECS  # so long that the server stops waiting for it
DEFIANT = ("stuck close", "failed close")
"""What keeps an agent alive that was told to end."""


class SimAgents:
    default = "sim"

    def __init__(self, world: World) -> None:
        self._driver = SimDriver(world)

    def spec(self, name: str) -> AgentSpec:  # noqa: ARG002 - there is one
        return SPEC

    def driver(self, spec: AgentSpec) -> "SimDriver":  # noqa: ARG002 - there is one
        return self._driver

    def specs(self) -> Mapping[str, AgentSpec]:
        return {"sim": SPEC}

    def is_usable(self, name: str) -> bool:
        return name == "sim"


class SimDriver:
    capabilities = frozenset({Capability.RETURN, Capability.EVIDENCE, Capability.PERMISSIONS})

    def __init__(self, world: World) -> None:
        self._world = world

    async def open(self, launch: Launch, sink: Sink) -> "SimAgent":  # noqa: ARG002 - it says nothing then
        """The process is there before it can be spoken to; whoever is cancelled meanwhile ends it."""
        world, home = self._world, launch.session_id
        if home not in world.disk.homes:
            world.violate(f"an agent is started for {home}, which has no home")
            world.disk.homes[home] = {}
        agent = SimAgent(world, launch)
        try:
            await asyncio.sleep(STUCK_SECS if world.strikes("stuck start") else world.draw_delay())
        except BaseException:
            agent.die()
            raise
        if world.strikes("no start"):
            agent.die()
            raise AgentStartFailed("it did not start (simulated)")
        return agent


class SimAgent:
    mcp_servers: tuple[str, ...] = ()
    note: str | None = None

    def __init__(self, world: World, launch: Launch) -> None:
        self._world = world
        self._home = launch.session_id
        known = world.disk.homes[self._home]
        wanted = launch.agent_session_id
        self.how: Literal["new", "loaded", "resumed"] = "new" if wanted not in known else "loaded"
        self.agent_session_id = wanted if wanted is not None and wanted in known else world.new_id()
        self.answered: str | None = None
        self.remembered: list[str] | None = list(known.get(self.agent_session_id, ()))
        known.setdefault(self.agent_session_id, [])
        self._cancelled = world.loop.create_future()
        self._gone = world.loop.create_future()
        self._closing: asyncio.Future[None] | None = None
        others = world.living.setdefault(self._home, [])
        if others:
            world.violate(f"two agents live in the home of {self._home}")
        others.append(self)
        world.note("agent of", self._home, "starts,", self.how, "knows", self.remembered)

    @property
    def alive(self) -> bool:
        return self._closing is None and not self._gone.done()

    async def prompt(
        self,
        text: str,
        sink: Sink,
        *,
        preface: str = "",  # noqa: ARG002
        traceparent: str | None = None,  # noqa: ARG002
    ) -> Answer:
        word, *script = text.split()
        world = self._world
        world.heard[text] += 1
        world.note("agent of", self._home, "hears", repr(text))
        self._cancelled = world.loop.create_future()
        self._remember(text)
        for number, deed in enumerate(script):
            if await self._is_cancelled_within(world.draw_delay(), deaf=script[-1] == "deaf"):
                return Answer(stop_reason="cancelled")
            if deed == "say":
                await sink.emit(AgentEvent(EventType.TEXT, {"content": f"{word}.{number} "}), 20)
            elif deed == "ask":
                await self._ask(sink)
            elif deed == "die":
                self.die()
                raise AgentFailed("it died (simulated)")
            elif deed == "refuse":
                raise AgentFailed("it would not (simulated)")
            elif deed in ("hang", "deaf"):
                await self._is_cancelled_within(None, deaf=deed == "deaf")
                return Answer(stop_reason="cancelled")
        await sink.emit(AgentEvent(EventType.RESPONSE, {"stop_reason": "end_turn"}), 20)
        return Answer(stop_reason="end_turn")

    async def cancel(self) -> None:
        if not self._cancelled.done():
            self._cancelled.set_result(None)
        await self._world.pause()

    @contextmanager
    def pause(self) -> Iterator[None]:
        yield

    async def close(self) -> None:
        """Whoever no longer waits leaves it ending. After a failure it may live, and can be tried again."""
        if self._closing is None or has_failed(self._closing):
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        world = self._world
        if world.strikes("failed close"):
            raise OSError(5, "nobody knows what is left of it (simulated)")
        await asyncio.sleep(STUCK_CLOSE_SECS if world.strikes("stuck close") else world.draw_delay())
        self.die()

    def die(self) -> None:
        if not self._gone.done():
            self._world.note("agent of", self._home, "ends")
            self._gone.set_result(None)
            others = self._world.living.get(self._home, [])
            if self in others:
                others.remove(self)

    def _remember(self, text: str) -> None:
        home = self._world.disk.homes.get(self._home)
        if home is None:
            self._world.violate(f"an agent works in the home of {self._home}, which is gone")
        else:
            home.setdefault(self.agent_session_id, []).append(text)

    async def _ask(self, sink: Sink) -> None:
        verdict = await sink.ask(Ask(tool="edit", kind="edit", options=OPTIONS, request={}))
        self._world.note("agent of", self._home, "is told", verdict.option_id)

    async def _is_cancelled_within(self, seconds: float | None, *, deaf: bool) -> bool:
        """Wait a while, for ever with None; AgentFailed when the process was ended meanwhile."""
        waits = {self._gone} if deaf else {self._gone, self._cancelled}
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if self._gone.done():
            raise AgentFailed("it was ended (simulated)")
        return self._cancelled.done() and not deaf
