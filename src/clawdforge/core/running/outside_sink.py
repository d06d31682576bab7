"""Where an agent's words go while no prompt runs: to its session's log, up to a limit."""

from clawdforge.core.clock import Clock
from clawdforge.core.models.agents import Ask, Used, Verdict
from clawdforge.core.models.events import AgentEvent, Draft, Words, draft, draft_of
from clawdforge.core.ports import Store, Tx
from clawdforge.wire.event import EventType


class OutsideSink:
    """Records what an agent sends while no prompt runs, up to a limit, while its node holds the session."""

    MAX_MESSAGES = 1000
    MAX_BYTES = 16 << 20

    def __init__(self, store: Store, clock: Clock, app: str, session_id: str, node: str | None) -> None:
        self._store = store
        self._clock = clock
        self._app = app
        self._session_id = session_id
        self._node = node
        self._left = self.MAX_MESSAGES
        self._room = self.MAX_BYTES

    async def emit(self, event: AgentEvent, size: int) -> None:
        if self._left <= 0 or self._room <= 0:
            return
        self._left -= 1
        self._room -= size
        await self._append(*(draft_of(part, None, self._clock.now()) for part in event.in_parts()))
        if self._left <= 0 or self._room <= 0:
            await self.report_truncation(0, "the agent sent too much outside of a turn; the rest is dropped")

    async def emit_words(self, words: Words) -> None:
        for event, size in words.events():
            await self.emit(event, size)

    async def report_truncation(self, dropped: int, reason: str) -> None:
        fields = {"dropped_bytes": dropped, "reason": reason}
        await self._append(draft(EventType.OUTPUT_TRUNCATED, None, self._clock.now(), fields))

    def note_usage(self, used: Used) -> None:
        """Nothing runs that could have a limit."""

    async def ask(self, request: Ask) -> Verdict:  # noqa: ARG002 - part of the port
        return Verdict(option_id=None)

    async def _append(self, *events: Draft) -> None:
        def work(tx: Tx) -> None:
            session = tx.session(self._session_id)
            if session is not None and session.holder == self._node:
                tx.append(self._session_id, events)

        await self._store.write(self._app, work)
