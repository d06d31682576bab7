"""Import and export of sessions."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pydantic import ValidationError

from clawdforge.core.imports import formats
from clawdforge.core.model import MessageRow, SessionRow, StoredEvent, TurnRow
from clawdforge.core.ports import Store, Tx, View
from clawdforge.core.rules import memory
from clawdforge.core.rules.sessions import (
    SessionState,
    admit_session,
    announce_session,
    create_session,
    state_of,
)
from clawdforge.core.rules.turns import make_title, need_session
from clawdforge.core.services.sessions import SessionService
from clawdforge.wire.base import Json
from clawdforge.wire.errors import InvalidRequest, SessionBusy
from clawdforge.wire.message import Role
from clawdforge.wire.session import MAX_TITLE, CreateSession, ImportRequest, Retention
from clawdforge.wire.turn import TurnState

T = TypeVar("T")
PAGE = 500
AT_ONCE = 200
PAGE_BYTES = 4 << 20
TRIES = 5


@dataclass(frozen=True, slots=True)
class Exported:
    """A session as callers see it, without what was cut. Only the events, if asked for, contain that too."""

    session: SessionRow
    messages: list[MessageRow]
    turns: list[TurnRow]
    events: list[StoredEvent] | None = None


class TransferService:
    def __init__(self, store: Store, sessions: SessionService, max_live_sessions: int) -> None:
        self._store = store
        self._sessions = sessions
        self._max_live = max_live_sessions

    async def import_session(self, app: str, request: ImportRequest) -> SessionState:
        """Import all of a transcript or nothing. The agent gets the transcript with its first prompt."""
        found = await asyncio.to_thread(formats.read_import, request)  # a long one takes a second
        row = await self._sessions.prepare(app, _session_of(request, found))
        row = replace(row, **{name: found.settings[name] for name in formats.KEPT if name in found.settings})
        has_visible = any(not message.archived for message in found.messages)
        row = replace(row, context_plan=memory.TRANSCRIPT if has_visible else memory.NEW)
        if len(found.messages) <= AT_ONCE:
            return await self._store.write(app, lambda tx: _import(tx, row, found, self._max_live))
        return await self._import_in_parts(app, row, found)

    async def _import_in_parts(self, app: str, row: SessionRow, found: formats.Imported) -> SessionState:
        """Import in several transactions, so that others can write in between.

        Until it is complete the session is a closed one, which the sweeper removes after a crash.
        """
        session_id, at = row.session_id, row.created_at
        part = replace(row, closed_at=at, retention=Retention.TTL)

        def begin(tx: Tx) -> None:
            admit_session(tx, row, self._max_live)
            tx.add_session(part)

        def end(tx: Tx) -> SessionState:
            admit_session(tx, row, self._max_live)
            _add_turns(tx, session_id, found.turns)
            tx.change_session(session_id, closed_at=row.closed_at, retention=row.retention)
            return announce_session(tx, row, at, _count_imported(found))

        await self._store.write(app, begin)
        for first in range(0, len(found.messages), AT_ONCE):
            some = found.messages[first : first + AT_ONCE]
            await self._store.write(app, lambda tx, some=some: _add_messages(tx, row, some))  # type: ignore[misc]
        return await self._store.write(app, end)

    async def export(self, app: str, session_id: str, *, events: bool = False) -> Exported:
        """Read page by page, so that nobody else waits; start over if the history was changed meanwhile."""
        for _ in range(TRIES):
            session = await self._store.read(app, lambda view: need_session(view, session_id))
            messages = await self._read_all(
                app, lambda view, at: view.messages(session_id, after=at, limit=PAGE, show="all"), _seq
            )
            turns = await self._read_all(
                app,
                lambda view, at: view.turns(session_id, after=at, limit=PAGE),
                lambda turn: turn.turn_index,
            )
            stored = await self._read_events(app, session) if events else None
            after = await self._store.read(app, lambda view: need_session(view, session_id))
            if after.context == session.context and after.redo == session.redo:
                said = [turn for turn in turns if not turn.cut and turn.state is TurnState.ENDED]
                return Exported(after, messages, said, stored)
        raise SessionBusy("the history of this session keeps changing; try again later")

    async def _read_all(
        self, app: str, page: Callable[[View, int], list[T]], key: Callable[[T], int]
    ) -> list[T]:
        found: list[T] = []
        while True:
            at = key(found[-1]) if found else 0
            batch = await self._store.read(app, lambda view, at=at: page(view, at))  # type: ignore[misc]
            found += batch
            if len(batch) < PAGE:
                return found

    async def _read_events(self, app: str, session: SessionRow) -> list[StoredEvent]:
        found: list[StoredEvent] = []
        while not found or found[-1].seq < session.head:
            at = found[-1].seq if found else 0
            found += await self._store.read(
                app,
                lambda view, at=at: view.events(  # type: ignore[misc]
                    session.session_id, after=at, limit=session.head - at, max_bytes=PAGE_BYTES
                ),
            )
        return found


def _session_of(request: ImportRequest, found: formats.Imported) -> CreateSession:
    """The session to make: what the caller says comes before what the transcript says."""
    first = next((row.content for row in found.messages if row.role == Role.USER), "")
    try:
        return CreateSession(
            agent=request.agent or found.settings.get("agent"),
            model=request.model or found.settings.get("model"),
            cwd=request.cwd,
            title=(request.title or found.title or make_title(first))[:MAX_TITLE],
            meta=found.settings.get("meta") if request.meta is None else request.meta,
            labels=found.settings.get("labels") or [],
            retention=request.retention,
        )
    except ValidationError as error:
        problem = formats.explain_invalid(error)
        raise InvalidRequest(f"no session can be made of this transcript: {problem}") from None


def _seq(row: MessageRow) -> int:
    return row.seq


def _import(tx: Tx, row: SessionRow, found: formats.Imported, max_live: int) -> SessionState:
    create_session(tx, row, max_live, row.created_at, _count_imported(found))
    _add_messages(tx, row, found.messages)
    _add_turns(tx, row.session_id, found.turns)
    return state_of(tx, need_session(tx, row.session_id))


def _count_imported(found: formats.Imported) -> Json:
    return {"imported": len(found.messages), "skipped": found.skipped}


def _add_messages(tx: Tx, row: SessionRow, messages: Sequence[MessageRow]) -> None:
    for message in messages:
        tx.add_message(replace(message, session_id=row.session_id, ts=message.ts or row.created_at))


def _add_turns(tx: Tx, session_id: str, turns: Sequence[TurnRow]) -> None:
    for turn in turns:
        tx.add_turn(replace(turn, session_id=session_id))
    if turns:
        started = sum(turn.started_at is not None for turn in turns)
        last = max(turn.turn_index for turn in turns)
        tx.change_session(session_id, last_turn=last, turn_count=started)
