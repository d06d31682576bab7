"""What tests of the ACP driver share: a sink that writes down what it gets, and agents to open."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clawdforge import scripted
from clawdforge.core.models.agents import AgentSpec, Ask, Launch, Used, Verdict
from clawdforge.core.models.events import AgentEvent, Words
from clawdforge.drivers.acp.driver import AcpAgent, AcpDriver
from clawdforge.drivers.acp.limits import AcpLimits
from clawdforge.drivers.processes.containment import Containment
from clawdforge.drivers.processes.spawner import Spawner
from clawdforge.wire.base import Json
from clawdforge.wire.event import EventType
from clawdforge.wire.event_forms import nest

SESSION = "5b8f7a52-2f0e-4f5e-9a39-0c5b7f3f0001"


async def until(condition: Callable[[], bool], within: float = 60.0) -> None:
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110 - the condition is another process's doing
            await asyncio.sleep(0.002)


def first_allow(request: Ask) -> Verdict:
    allowing = (o["optionId"] for o in request.options if str(o.get("kind")).startswith("allow"))
    return Verdict(option_id=next(allowing, None))


@dataclass
class Notebook:
    """A sink that keeps everything. `deciding` answers what the agent asks."""

    events: list[AgentEvent] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    cuts: list[tuple[int, str]] = field(default_factory=list)
    asks: list[Ask] = field(default_factory=list)
    used: list[Used] = field(default_factory=list)
    deciding: Callable[[Ask], Awaitable[Verdict]] | None = None
    pace: Callable[[], Awaitable[None]] | None = None

    async def emit(self, event: AgentEvent, size: int) -> None:
        if self.pace is not None:
            await self.pace()
        self.events.append(event)
        self.sizes.append(size)

    async def emit_words(self, words: Words) -> None:
        for event, size in words.events():
            await self.emit(event, size)

    async def report_truncation(self, dropped: int, reason: str) -> None:
        self.cuts.append((dropped, reason))

    def note_usage(self, used: Used) -> None:
        self.used.append(used)

    async def ask(self, request: Ask) -> Verdict:
        self.asks.append(request)
        return first_allow(request) if self.deciding is None else await self.deciding(request)

    def messages(self) -> list[Json]:
        """What was kept, as the agent sent it."""
        return [_received(event) for event in self.events]

    def types(self) -> list[EventType]:
        return [event.kind for event in self.events]

    def text(self) -> str:
        return "".join(self.texts())

    def texts(self) -> list[str]:
        return [event.fields["content"] for event in self.events if event.kind is EventType.TEXT]


def _received(event: AgentEvent) -> Json:
    message = nest({"type": event.kind.value, **event.fields})
    sent = {key: message[key] for key in message if key in ("jsonrpc", "id", "method", "params", "result")}
    params = sent.get("params")
    if isinstance(params, dict) and "update" in params:
        sent["params"] = {key: params[key] for key in ("sessionId", "update")}
    return sent


class Bench:
    """One session's folders, and a driver over them."""

    def __init__(self, root: Path, containment: Containment) -> None:
        self.data = root / "data"
        self.home = self.data / "homes" / SESSION
        self.workspace = self.data / "workspaces" / SESSION
        for folder in (self.home / ".tmp", self.workspace):
            folder.mkdir(parents=True)
        self.outside = Notebook()
        self._spawner = Spawner(containment, self.data, "boot")

    def launch(self, *command: str, **more: Any) -> Launch:
        quirks = more.pop("quirks", {})
        spec = AgentSpec(name="scripted", driver="acp", command=command, quirks=quirks)
        fields = {"app": "a", "session_id": SESSION, "cwd": self.workspace, "home": self.home, **more}
        return Launch(agent=spec, **fields)

    async def open(self, launch: Launch, **limits: Any) -> AcpAgent:
        driver = AcpDriver(self._spawner, os.environ, AcpLimits(**limits))
        return await driver.open(launch, self.outside)

    @asynccontextmanager
    async def scripted(
        self, *flags: str, limits: dict[str, Any] | None = None, **more: Any
    ) -> AsyncIterator[AcpAgent]:
        before = self.outside.types().count(EventType.COMMANDS)
        async with self._opened(self.launch(*scripted.command(*flags), **more), limits) as agent:
            if agent.how == "new":  # it names its commands a moment after it opened a session
                await until(lambda: self.outside.types().count(EventType.COMMANDS) > before)
            yield agent

    @asynccontextmanager
    async def program(
        self, source: str, limits: dict[str, Any] | None = None, **more: Any
    ) -> AsyncIterator[AcpAgent]:
        """An agent whose every line is the test's own."""
        async with self._opened(self.launch(sys.executable, "-c", source, **more), limits) as agent:
            yield agent

    @asynccontextmanager
    async def _opened(self, launch: Launch, limits: dict[str, Any] | None) -> AsyncIterator[AcpAgent]:
        agent = await self.open(launch, **(limits or {}))
        try:
            async with asyncio.timeout(60):
                yield agent
        finally:
            await agent.close()

    def processes(self) -> list[int]:
        """Everything of this session that still runs: its home is in the environment."""
        wanted = f"HOME={self.home}\0".encode()
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                found += [int(path.parent.name)] if wanted in path.read_bytes() else []
        return found


async def say(agent: AcpAgent, text: str, **more: Any) -> Notebook:
    sink = Notebook(**more)
    await agent.prompt(text, sink)
    return sink
