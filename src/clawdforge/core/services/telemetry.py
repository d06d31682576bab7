"""Telemetry: tells a collector of every turn that has ended, and now and then of all metrics.

It hears of commits, like everybody else, and reads from the store what it tells. So a turn that a crash cut
off is told of like any other: the next server ends it, and that is a commit. Nothing is kept for a collector
that is away: what it misses is counted.
"""

import asyncio
import logging
from collections import deque
from contextlib import suppress
from dataclasses import replace
from typing import Final, NamedTuple

import orjson

from clawdforge.core.models.rows import Commit
from clawdforge.core.models.traces import TurnTrace
from clawdforge.core.pacing.loop_turns import LoopTurns
from clawdforge.core.ports import Store, View
from clawdforge.core.ports.telemetry import Telemetry
from clawdforge.core.rules.traces import Said, ToolCalls, read_calls
from clawdforge.core.services.metrics import MetricsService
from clawdforge.wire.base import Json
from clawdforge.wire.errors import ForgeError, Unavailable
from clawdforge.wire.event import EventType

log = logging.getLogger(__name__)
MOST_WAITING: Final = 4096
STORE_AWAY_SECS: Final = 5.0
FINISH_SECS: Final = 2.0
MAX_CHARS: Final = 16_384
PAGE_EVENTS: Final = 1000
PAGE_BYTES: Final = 1 << 20
MOST_PAGES: Final = 500
"""Of one turn: after half a million events, or as many MiB, it is told without the rest of its tools."""


class Ended(NamedTuple):
    """A turn that has ended, and the message that it was answered with."""

    app: str
    session_id: str
    turn_index: int
    message: int | None


class TelemetryService:
    def __init__(
        self, store: Store, telemetry: Telemetry | None, metrics: MetricsService, turns: LoopTurns
    ) -> None:
        self._store = store
        self._telemetry = telemetry
        self._metrics = metrics
        self._turns = turns
        self._ended: deque[Ended] = deque()
        self._woken = asyncio.Event()
        if telemetry is not None:
            store.listen(self._on_commit)

    async def tell_turns(self) -> None:
        """Tell of turns as they end, for ever."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            try:
                await self._tell_waiting()
            except Unavailable as error:
                log.warning("turns are told of later: %s", error.message)
                await asyncio.sleep(STORE_AWAY_SECS)
                self._woken.set()

    async def tell_metrics(self, every: float) -> None:
        """Tell of all metrics, again and again, for ever; never, if that is every 0 seconds."""
        if self._telemetry is None or not every:
            await asyncio.get_running_loop().create_future()
        while True:
            await asyncio.sleep(every)
            with suppress(Unavailable):  # the next reading tells of that as well
                await self._measure()

    async def finish(self) -> None:
        """Tell of what has happened until now, since the server stops. Takes a moment at most."""
        with suppress(TimeoutError, ForgeError):
            async with asyncio.timeout(FINISH_SECS):
                await self._tell_waiting()
                await self._measure()

    def _on_commit(self, commit: Commit) -> None:
        for event in commit.events if EventType.TURN_ENDED in commit.types else ():
            if event.type == EventType.TURN_ENDED and event.turn is not None:
                self._note(Ended(commit.app, commit.session_id, event.turn, _find_message(event.data)))

    def _note(self, ended: Ended) -> None:
        if len(self._ended) >= MOST_WAITING:
            if self._telemetry is not None:
                self._telemetry.miss()
            return
        self._ended.append(ended)
        self._woken.set()

    async def _tell_waiting(self) -> None:
        telemetry = self._telemetry
        while telemetry is not None and self._ended:
            try:
                trace = await self._read(self._ended[0], with_content=telemetry.with_content)
            except Unavailable:
                raise
            except ForgeError:  # rows that are damaged; the next turn is not
                log.exception("a turn cannot be told of", extra={"session_id": self._ended[0].session_id})
                telemetry.miss()
                trace = None
            self._ended.popleft()
            if trace is not None:
                telemetry.record(trace)

    async def _measure(self) -> None:
        if self._telemetry is not None:
            self._telemetry.measure(await self._metrics.read())

    async def _read(self, ended: Ended, *, with_content: bool) -> TurnTrace | None:
        """None for a turn that never began, or whose session is gone."""
        found = await self._store.read(
            ended.app, lambda view: _find_turn(view, ended, with_content=with_content)
        )
        if found is None:
            return None
        begun, turn = found, found.turn
        calls, after = ToolCalls(with_content=with_content), (turn.first_seq or 1) - 1
        for _ in range(MOST_PAGES):
            said, last = await self._store.read(
                ended.app,
                lambda view, after=after: _read_page(view, ended, after, with_content=with_content),  # type: ignore[misc]
            )
            for one in said:
                calls.take(one)
            if last is None:
                break
            after = last
            await self._turns.slice(ended.app)
        else:
            calls.is_whole = False
        return replace(begun, tools=calls.list(), is_whole=calls.is_whole)


def _find_message(data: bytes) -> int | None:
    message = orjson.loads(data).get("message")
    return message if isinstance(message, int) else None


def _find_turn(view: View, ended: Ended, *, with_content: bool) -> TurnTrace | None:
    """Without its tools. Traces may wait in memory, so they have no more of what was said than is told."""
    session, turn = view.session(ended.session_id), view.turn(ended.session_id, ended.turn_index)
    if session is None or turn is None or turn.started_at is None or turn.ended_at is None:
        return None
    answer = ""
    if with_content and ended.message is not None:
        found = view.messages(ended.session_id, after=ended.message - 1, limit=1, show="all")
        answer = found[0].content if found and found[0].seq == ended.message else ""
    most = MAX_CHARS if with_content else 0
    words: Json = {"prompt": turn.prompt[:most], "error": turn.error and turn.error[:most]}
    return TurnTrace(
        app=ended.app,
        agent=session.agent,
        model=session.model,
        turn=replace(turn, **words, files=(), error_extra={}, key=None, fingerprint=None),
        answer=answer[:most],
    )


def _read_page(view: View, ended: Ended, after: int, *, with_content: bool) -> tuple[list[Said], int | None]:
    """What a page of events says of tools, and the last of its numbers; None after the last page."""
    page = view.turn_events(
        ended.session_id, ended.turn_index, after=after, limit=PAGE_EVENTS, max_bytes=PAGE_BYTES
    )
    return read_calls(page, with_content=with_content), page[-1].seq if page else None
