"""Where an agent's words go before its session is there: they are kept, and passed on once it is."""

from typing import Final

from clawdforge.core.models.agents import Ask, Used, Verdict
from clawdforge.core.models.events import AgentEvent, Words
from clawdforge.core.ports import Sink


class EarlySink:
    """Keeps a few messages, such as the commands that the agent knows; what is more than that is dropped."""

    MOST_MESSAGES: Final = 50
    MOST_BYTES: Final = 1 << 20

    def __init__(self) -> None:
        self._sink: Sink | None = None
        self._kept: list[tuple[AgentEvent, int]] = []
        self._room = self.MOST_BYTES

    async def pass_on(self, sink: Sink) -> None:
        """To `sink` goes what was kept, in order, and whatever comes from now on."""
        while self._kept:
            await sink.emit(*self._kept.pop(0))
        self._sink = sink

    async def emit(self, event: AgentEvent, size: int) -> None:
        if self._sink is not None:
            await self._sink.emit(event, size)
        elif len(self._kept) < self.MOST_MESSAGES and size <= self._room:
            self._room -= size
            self._kept.append((event, size))

    async def emit_words(self, words: Words) -> None:
        for event, size in words.events():
            await self.emit(event, size)

    async def report_truncation(self, dropped: int, reason: str) -> None:
        if self._sink is not None:
            await self._sink.report_truncation(dropped, reason)

    def note_usage(self, used: Used) -> None:
        """Nothing runs that could have a limit."""

    async def ask(self, request: Ask) -> Verdict:
        """There is nobody to ask before there is a session."""
        return Verdict(option_id=None) if self._sink is None else await self._sink.ask(request)
