"""What the suite of drivers works on: sessions with folders of their own, and a sink that writes all down."""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from clawdforge.core.models.agents import AgentSpec, Ask, Launch, Used, Verdict
from clawdforge.core.models.events import AgentEvent, Words
from clawdforge.core.ports import Capability, Driver, LiveAgent
from clawdforge.wire.event import EventType

__all__ = ["DriverBench", "Notebook", "Place", "allow", "say", "until"]

WAIT: Final = 30.0


async def until(condition: Callable[[], bool], within: float = WAIT) -> None:
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110 - the condition is another process's doing
            await asyncio.sleep(0.005)


def allow(request: Ask) -> Verdict:
    allowing = (str(o["optionId"]) for o in request.options if str(o.get("kind")).startswith("allow"))
    return Verdict(option_id=next(allowing, None))


@dataclass
class Notebook:
    """A sink that keeps everything. `deciding` answers what the agent asks."""

    events: list[AgentEvent] = field(default_factory=list)
    cuts: list[tuple[int, str]] = field(default_factory=list)
    asks: list[Ask] = field(default_factory=list)
    used: list[Used] = field(default_factory=list)
    deciding: Callable[[Ask], Awaitable[Verdict]] | None = None

    async def emit(self, event: AgentEvent, size: int) -> None:  # noqa: ARG002 - part of the port
        if event.kind is not EventType.COMMANDS:  # said of the session, whenever it comes
            self.events.append(event)

    async def emit_words(self, words: Words) -> None:
        for event, size in words.events():
            await self.emit(event, size)

    async def report_truncation(self, dropped: int, reason: str) -> None:
        self.cuts.append((dropped, reason))

    def note_usage(self, used: Used) -> None:
        self.used.append(used)

    async def ask(self, request: Ask) -> Verdict:
        self.asks.append(request)
        return allow(request) if self.deciding is None else await self.deciding(request)

    def types(self) -> list[EventType]:
        return [event.kind for event in self.events]

    def texts(self) -> list[str]:
        return [str(event.fields["content"]) for event in self.events if event.kind is EventType.TEXT]

    def text(self) -> str:
        return "".join(self.texts())


@dataclass(frozen=True)
class Place:
    """One session: its id, home and workspace."""

    session_id: str
    home: Path
    workspace: Path

    def processes(self) -> list[int]:
        """All that still run for it: its home is in their environment."""
        wanted = f"HOME={self.home}\0".encode()
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                found += [int(path.parent.name)] if wanted in path.read_bytes() else []
        return found


@dataclass
class DriverBench:
    """A driver, an agent for it, and a data folder. `broken` is an agent that fails at its start."""

    driver: Driver
    agent: AgentSpec
    broken: AgentSpec
    data: Path
    capabilities: frozenset[Capability]
    outside: Notebook = field(default_factory=Notebook)

    def __post_init__(self) -> None:
        self.place = self.new_place()

    def new_place(self) -> Place:
        session_id = str(uuid.uuid4())
        place = Place(session_id, self.data / "homes" / session_id, self.data / "workspaces" / session_id)
        for folder in (place.home / ".tmp", place.workspace):
            folder.mkdir(parents=True)
        return place

    def launch(self, place: Place | None = None, **more: Any) -> Launch:
        place = place or self.place
        first = Launch(
            app="a",
            session_id=place.session_id,
            agent=self.agent,
            cwd=place.workspace,
            home=place.home,
        )
        return replace(first, **more)

    @contextlib.asynccontextmanager
    async def opened(self, place: Place | None = None, **more: Any) -> AsyncGenerator[LiveAgent, None]:
        live = await self.driver.open(self.launch(place, **more), self.outside)
        try:
            yield live
        finally:
            await live.close()


async def say(live: LiveAgent, text: str, **more: Any) -> Notebook:
    sink = Notebook(**more)
    await live.prompt(text, sink)
    return sink
