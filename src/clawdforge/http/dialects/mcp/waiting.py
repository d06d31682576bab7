"""What was said in a turn after a cursor, waited for until it ends, asks for something, or time is up."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Final

from clawdforge.core.models.events import StoredEvent
from clawdforge.core.models.rows import TurnRow
from clawdforge.core.services.all import Services
from clawdforge.http.connections.waiting import closing
from clawdforge.wire.base import Json
from clawdforge.wire.errors import TurnNotFound
from clawdforge.wire.event import EventType
from clawdforge.wire.mcp_server import WaitTool
from clawdforge.wire.turn import Outcome, TurnState

MAX_CHARS: Final = 64 * 1024
"""So much of an answer is returned at once. Of a single piece that is longer the rest is left out: it would
fill a model's context, and `GET /sessions/{id}/messages` has it."""


async def wait(core: Services, app: str, asked: WaitTool) -> Json:
    turn, cursor = await _find(core, app, asked)
    heard = _Heard(turn.turn_index, cursor)
    if turn.state is not TurnState.ENDED or cursor < (turn.last_seq or 0):
        with suppress(TimeoutError):
            async with asyncio.timeout(asked.seconds):
                await _listen(core, app, asked.session_id, heard)
    if heard.end is not None:
        turn = _with_end(turn, heard.end)
    elif turn.state is not TurnState.ENDED:
        turn = await core.turns.get(app, asked.session_id, turn.turn_index)
    return await _describe(core, app, turn, heard)


async def _find(core: Services, app: str, asked: WaitTool) -> tuple[TurnRow, int]:
    """The turn that is meant, and after what it is told. Whoever says both needs nothing of the session."""
    if asked.turn and asked.after is not None:
        return await core.turns.get(app, asked.session_id, asked.turn), asked.after
    row = (await core.sessions.get(app, asked.session_id)).row
    turn_index = asked.turn or row.last_turn
    if not turn_index:
        raise TurnNotFound("nothing was sent to this session yet; use send")
    turn = await core.turns.get(app, asked.session_id, turn_index)
    return turn, asked.after if asked.after is not None else _find_start(turn, row.head)


class _Heard:
    """What came so far."""

    def __init__(self, turn: int, cursor: int) -> None:
        self.turn = turn
        self.cursor = cursor
        self.texts: list[str] = []
        self.chars = 0
        self.is_enough = False
        self.is_cut = False
        self.end: StoredEvent | None = None

    def take(self, stored: StoredEvent) -> None:
        """Only what is said is decoded: what tools return may be far longer."""
        self.cursor = stored.seq
        if stored.turn != self.turn:
            return
        if stored.type == EventType.TEXT and (content := stored.decode().get("content")):
            self.texts.append(content[:MAX_CHARS])
            self.chars += len(self.texts[-1])
            self.is_cut = self.is_cut or len(content) > MAX_CHARS
        if stored.type == EventType.TURN_ENDED:
            self.end = stored
        is_asking = stored.type == EventType.PERMISSION_REQUESTED
        self.is_enough = self.end is not None or is_asking or self.chars >= MAX_CHARS


async def _listen(core: Services, app: str, session_id: str, heard: _Heard) -> None:
    batches = core.log.follow(app, session_id, heard.cursor)
    async with closing(batches):
        async for batch in batches:
            for stored in batch:
                heard.take(stored)
                if heard.is_enough:
                    return


async def _describe(core: Services, app: str, turn: TurnRow, heard: _Heard) -> Json:
    """It has ended for the caller when the caller has heard its end."""
    is_over = turn.state is TurnState.ENDED and heard.cursor >= (turn.last_seq or 0)
    state = turn.state if is_over or turn.state is not TurnState.ENDED else TurnState.RUNNING
    found: Json = {
        "session_id": turn.session_id,
        "turn": turn.turn_index,
        "state": state.value,
        "text": "".join(heard.texts),
        "is_cut": heard.is_cut,
        "cursor": heard.cursor,
    }
    if is_over:
        found |= {"outcome": turn.outcome and turn.outcome.value, "stop_reason": turn.stop_reason}
        if turn.error:
            found |= {"error": turn.error, "code": turn.code}
    if state is TurnState.WAITING:
        asked = await core.permissions.list(app, turn.session_id, "pending")
        found["permissions"] = [
            {"permission_id": one.permission_id, "tool": one.tool, "kind": one.kind} for one in asked
        ]
    return found


def _with_end(turn: TurnRow, end: StoredEvent) -> TurnRow:
    """The event says what the row says then, so that need not be read again."""
    told = end.decode()
    return replace(
        turn,
        state=TurnState.ENDED,
        last_seq=end.seq,
        outcome=Outcome(told["outcome"]),
        **{name: told[name] for name in ("stop_reason", "error", "code")},
    )


def _find_start(turn: TurnRow, head: int) -> int:
    known = turn.first_seq or turn.last_seq
    return head if known is None else known - 1
