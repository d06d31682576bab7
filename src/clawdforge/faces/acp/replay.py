"""The whole history of a session as updates, up to one event: what stands in its transcript, and what the
turn that runs has said so far."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from clawdforge.client import AsyncForge
from clawdforge.client.models import SessionState
from clawdforge.faces.acp import updates
from clawdforge.wire.base import Json

PAGE: Final = 500
LOOKS: Final = 20


@dataclass(frozen=True, slots=True)
class Stand:
    """A moment of a session: its state, and the last message that belongs to it."""

    state: SessionState
    last_message: int


async def look(forge: AsyncForge, session_id: str) -> Stand:
    """Both of the same moment: messages come and go only with turns, so their number tells."""
    session = forge.attach(session_id)
    state = await session.state()
    for _ in range(LOOKS):
        page = await session.message_page(tail=True, limit=1)
        after = await session.state()
        stand = Stand(state, page.messages[-1].seq if page.messages else 0)
        if (after.message_count, after.running_turn) == (state.message_count, state.running_turn):
            return stand
        state = after
    return stand


async def replay(forge: AsyncForge, stand: Stand) -> AsyncIterator[list[Json]]:
    """Page by page; the next one is fetched while the editor takes the one before."""
    session = forge.attach(stand.state.session_id)
    coming = asyncio.ensure_future(session.message_page(after=0, limit=PAGE))
    try:
        while True:
            page = await coming
            if page.next is not None:
                coming = asyncio.ensure_future(session.message_page(after=page.next, limit=PAGE))
            said = [message for message in page.messages if message.seq <= stand.last_message]
            yield [update for message in said for update in updates.of_message(message)]
            if page.next is None:
                break
    finally:
        coming.cancel()
    if stand.state.running_turn is not None:
        async for update in _replay_running(forge, stand, stand.state.running_turn):
            yield [update]


async def _replay_running(forge: AsyncForge, stand: Stand, running: int) -> AsyncIterator[Json]:
    """What the turn has said so far; its prompt is in the transcript already."""
    session = forge.attach(stand.state.session_id)
    turns = [turn async for turn in session.turns(after=running - 1) if turn.turn_index == running]
    for turn in turns:
        async for event in session.events(after=(turn.first_seq or 1) - 1):
            if event.seq > stand.state.head:
                return
            found = updates.of_event(event) if event.turn == running else None
            if found is not None:
                yield found
