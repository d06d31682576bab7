"""One running prompt: where its messages go, how much it may say, what it waits for."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from clawdforge.core.models.agents import Ask, Used, Verdict
from clawdforge.core.models.events import AgentEvent
from clawdforge.core.ports import Sink
from clawdforge.drivers.acp.gathering import Gathering
from clawdforge.wire.base import Json
from clawdforge.wire.event import EventType

TOO_MUCH: Final = "the turn said more than CLAWDFORGE_MAX_TURN_BYTES allows"
MAX_FAILURE: Final = 4096
WORK: Final = frozenset(
    {EventType.TEXT, EventType.THINKING, EventType.TOOL_CALL, EventType.TOOL_UPDATE, EventType.PLAN}
)
"""What an agent sends only when it has begun with the prompt."""


def make_params(session_id: str, texts: Iterable[str], traceparent: str | None) -> Json:
    """Those of `session/prompt`: a block for each text that is not empty."""
    params: Json = {
        "sessionId": session_id,
        "prompt": [{"type": "text", "text": text} for text in texts if text],
    }
    return params if traceparent is None else {**params, "_meta": {"traceparent": traceparent}}


class RunningPrompt:
    """Between a prompt and its answer. Output beyond the limit is dropped; the answer itself never is."""

    def __init__(self, sink: Sink, max_bytes: int, failed_meta: Sequence[str] = ()) -> None:
        self.sink = sink
        self.sent = asyncio.Event()
        self.cancelled = False
        self.has_begun = False
        self.failure: str | None = None  # why it has failed, if the agent told so before its answer
        self._failed_meta = failed_meta
        self._left = max_bytes
        self._full = False
        self._dropped = 0
        self._over = False
        self._asking: set[asyncio.Task[object]] = set()
        self._gathering = Gathering()

    def gather_line(self, line: bytes | bytearray) -> bool:
        return self._gathering.take_line(line)

    def gather(self, message: Json, size: int) -> bool:
        return self._gathering.take(message, size)

    async def hand_over(self) -> None:
        """What was gathered."""
        words = self._gathering.hand_over()
        if words is None:
            return
        if self._failed_meta or self._full or sum(words.sizes) > self._left:
            for event, size in words.events():
                await self.emit(event, size)
            return
        self.has_begun = self.has_begun or words.kind in WORK
        self._left -= sum(words.sizes)
        await self.sink.emit_words(words)

    async def emit(self, event: AgentEvent, size: int) -> None:
        self.has_begun = self.has_begun or event.kind in WORK
        if self._failed_meta:
            self._look_for_failure(event)
        if self._full:
            self._dropped += size
        elif size > self._left:
            # Recorded at once, where the gap begins: the agent may never answer.
            self._full = True
            await self.sink.report_truncation(size, TOO_MUCH)
        else:
            self._left -= size
            await self.sink.emit(event, size)

    def _look_for_failure(self, event: AgentEvent) -> None:
        content = event.fields.get("content")
        if self.failure is not None and event.kind == EventType.TEXT and isinstance(content, str):
            self.failure = (self.failure + content)[:MAX_FAILURE]
        elif self.failure is None and event.kind == EventType.INFO:
            found: object = event.fields.get("update")
            for key in ("_meta", *self._failed_meta[:-1]):
                found = found.get(key) if isinstance(found, dict) else None
            self.failure = "" if found == self._failed_meta[-1] else None

    def note_usage(self, used: Used) -> None:
        """Who has used something has begun."""
        self.has_begun = self.has_begun or bool(used.tokens or used.cost_usd)
        self.sink.note_usage(used)

    async def report_loss(self, size: int, reason: str) -> None:
        """Record that a line was too long to be read. It may have told of work."""
        self.has_begun = True
        if self._full:
            self._dropped += size
        else:
            await self.sink.report_truncation(size, reason)

    async def answer(self, event: AgentEvent, size: int) -> None:
        if self._dropped:
            await self.sink.report_truncation(self._dropped, TOO_MUCH)
        await self.sink.emit(event, size)

    async def ask(self, request: Ask) -> Verdict:
        """Ask the session to decide. The answer is "cancelled" when the turn ends first."""
        self.has_begun = True
        task = asyncio.current_task()
        if self._over or task is None:
            return Verdict(option_id=None)
        self._asking.add(task)
        try:
            return await self.sink.ask(request)
        except asyncio.CancelledError:
            # Cancelled by `end` below; or because the connection closes, and then the cancel must go on.
            if self._over and task.uncancel() == 0:
                return Verdict(option_id=None)
            raise
        finally:
            self._asking.discard(task)

    def end(self) -> None:
        """Withdraw all open permission requests: the turn is over."""
        if not self._over:
            self._over = True
            for task in self._asking:
                task.cancel()
