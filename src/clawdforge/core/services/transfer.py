"""Import and export of sessions."""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from pydantic import ValidationError

from clawdforge.core.imports import formats
from clawdforge.core.models.events import StoredEvent
from clawdforge.core.models.rows import MessageRow, SessionRow, TurnRow
from clawdforge.core.pacing.computing import Computing
from clawdforge.core.pacing.loop_turns import LoopTurns
from clawdforge.core.ports import Store, Tx, View
from clawdforge.core.rules import memory
from clawdforge.core.rules.activity import note_activity
from clawdforge.core.rules.permission_modes import keep_mode
from clawdforge.core.rules.quotas import NO_QUOTAS, Quotas
from clawdforge.core.rules.sessions import (
    SessionState,
    admit_session,
    announce_session,
    create_session,
    state_of,
    unseen_until,
)
from clawdforge.core.rules.turns import make_title, need_session
from clawdforge.core.running.long_writes import LongWrite
from clawdforge.core.services.sessions import NewSession, SessionService
from clawdforge.wire.base import Json
from clawdforge.wire.errors import InvalidRequest, LimitExceeded, SessionBusy, SessionDamaged
from clawdforge.wire.message import Role
from clawdforge.wire.session import MAX_TITLE, CreateSession, ImportRequest
from clawdforge.wire.turn import TurnState

T = TypeVar("T")
log = logging.getLogger(__name__)
PAGE = 100
AT_ONCE = 30  # messages of a transaction: each goes into the full-text index
CHARS_AT_ONCE = 1 << 19
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
    def __init__(
        self,
        store: Store,
        sessions: SessionService,
        turns: LoopTurns,
        computing: Computing,
        quotas: Quotas = NO_QUOTAS,
    ) -> None:
        self._store = store
        self._turns = turns
        self._computing = computing
        self._sessions = sessions
        self._quotas = quotas

    async def import_session(
        self,
        app: str,
        request: ImportRequest,
        *,
        may_decide: bool = True,
        wanted: CreateSession | None = None,
        project: str | None = None,
    ) -> SessionState:
        """Import all of a transcript or nothing. The agent gets the transcript with its first prompt.

        `wanted` is the session to make of it, where that is more than a request for an import can say.
        """
        await self._store.read(app, self._quotas.check_room)
        found, parts = await self._computing.run(app, partial(_read_in_parts, request))
        kept = {name: found.settings[name] for name in formats.KEPT if name in found.settings}
        if "permission_mode" in kept:
            kept["permission_mode"] = keep_mode(kept["permission_mode"], may_decide=may_decide)
        has_visible = any(not message.archived for message in found.messages)
        plan = memory.TRANSCRIPT if has_visible else memory.NEW
        named = _session_of(request, found)
        if wanted is not None:
            named = wanted.model_copy(update={"title": wanted.title or named.title})
        async with self._sessions.prepare(
            app, named, project=project, may_decide=may_decide, is_new=False
        ) as prepared:
            new = replace(prepared, row=replace(prepared.row, **kept, context_plan=plan))
            if len(parts) <= 1 and len(found.turns) <= AT_ONCE:
                return await self._store.write(app, lambda tx: self._import(tx, new, found))
            return await self._import_in_parts(app, new, found, parts)

    def _import(self, tx: Tx, new: NewSession, found: formats.Imported) -> SessionState:
        row = new.row
        create_session(tx, row, self._quotas, row.created_at, _count_imported(found), new.above)
        _add_messages(tx, row, found.messages)
        _add_turns(tx, row.session_id, found.turns)
        note_activity(tx, row.session_id)
        self._quotas.check_room(tx, 0)
        return state_of(tx, need_session(tx, row.session_id))

    async def _import_in_parts(
        self, app: str, new: NewSession, found: formats.Imported, parts: Sequence[Sequence[MessageRow]]
    ) -> SessionState:
        """Import in several transactions, so that others can write in between.

        Nobody sees the session before it is complete; what is broken off is one that was deleted.
        """
        row, session_id, at = new.row, new.row.session_id, new.row.created_at

        def begin(tx: Tx) -> None:
            admit_session(tx, row, self._quotas, new.above)
            tx.add_session(replace(row, deleted_at=unseen_until(row)))

        def add(tx: Tx, part: Callable[[], None]) -> None:
            tx.reveal_session(session_id)  # within this transaction
            part()
            self._quotas.check_room(tx, 0)
            tx.change_session(session_id, deleted_at=unseen_until(row))

        def end(tx: Tx) -> SessionState:
            admit_session(tx, row, self._quotas, new.above)
            tx.reveal_session(session_id)
            note_activity(tx, session_id)
            return announce_session(tx, row, at, _count_imported(found))

        def give_up(tx: Tx) -> None:
            tx.reveal_session(session_id)
            tx.change_session(session_id, deleted_at=at)  # the next sweep removes it

        writing = LongWrite(self._store, app)
        await writing.step(begin)
        try:
            for some in parts:
                await writing.step(lambda tx, some=some: add(tx, partial(_add_messages, tx, row, some)))  # type: ignore[misc]
            for first in range(0, len(found.turns), AT_ONCE):
                part_of = found.turns[first : first + AT_ONCE]
                await writing.step(
                    lambda tx, some=part_of: add(tx, partial(_add_turns, tx, session_id, some))  # type: ignore[misc]
                )
        except LimitExceeded:
            await writing.step(give_up)
            raise
        return await writing.step(end)

    async def export(self, app: str, session_id: str, *, events: bool = False) -> Exported:
        """Read page by page, so that nobody else waits; start over if the history was changed meanwhile."""
        for _ in range(TRIES):
            session = await self._store.read(app, lambda view: need_session(view, session_id))
            messages = await self._read_all(
                app,
                lambda view, at, limit: view.messages(session_id, after=at, limit=limit, show="all"),
                lambda message: message.seq,
                session.last_message,
            )
            turns = await self._read_all(
                app,
                lambda view, at, limit: view.turns(session_id, after=at, limit=limit),
                lambda turn: turn.turn_index,
                session.last_turn,
            )
            stored = await self._read_events(app, session) if events else None
            after = await self._store.read(app, lambda view: need_session(view, session_id))
            if after.context == session.context and after.redo == session.redo:
                said = [turn for turn in turns if not turn.cut and turn.state is TurnState.ENDED]
                return Exported(after, messages, said, stored)
        raise SessionBusy("the history of this session keeps changing; try again later")

    async def _read_events(self, app: str, session: SessionRow) -> list[StoredEvent]:
        """As far as there are any: one whose log lacks its end must not keep us reading for ever."""
        session_id, head = session.session_id, session.head
        return await self._read_all(
            app,
            lambda view, at, limit: view.events(
                session_id, after=at, limit=min(limit, head - at), max_bytes=PAGE_BYTES
            ),
            lambda event: event.seq,
            head,
        )

    async def _read_all(
        self, app: str, page: Callable[[View, int, int], list[T]], key: Callable[[T], int], last: int
    ) -> list[T]:
        """All rows, a page at a time; `last` is the number of the last one. Damaged ones are left out."""
        found: list[T] = []
        at = 0
        while True:
            try:
                batch = await self._store.read(app, lambda view, at=at: page(view, at, PAGE))  # type: ignore[misc]
            except SessionDamaged:
                if at >= last:
                    return found
                found += await self._read_around(app, page, key, at, min(at + PAGE, last))
                at = min(at + PAGE, last)
                continue
            if not batch:
                return found
            found += batch
            at = key(batch[-1])
            await self._turns.slice(app)  # a read does not pause by itself

    async def _read_around(
        self,
        app: str,
        page: Callable[[View, int, int], list[T]],
        key: Callable[[T], int],
        after: int,
        last: int,
    ) -> list[T]:
        """Row by row, those of a page that can be read."""
        found: list[T] = []
        for at in range(after, last):
            await self._turns.slice(app)
            with suppress(SessionDamaged):
                some = await self._store.read(app, lambda view, at=at: page(view, at, 1))  # type: ignore[misc]
                found += [one for one in some if key(one) == at + 1]
        log.warning("an export lacks what is damaged: it has %d of %d rows here", len(found), last - after)
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


def _read_in_parts(
    request: ImportRequest,
) -> tuple[formats.Imported, Sequence[Sequence[MessageRow]]]:
    found = formats.read_import(request)
    return found, _part(found.messages)


def _part(messages: Sequence[MessageRow]) -> list[list[MessageRow]]:
    """Cut into parts that each fit into a transaction; a message is never cut."""
    parts: list[list[MessageRow]] = []
    room = 0
    for message in messages:
        size = len(message.content) + len(message.thinking) + len(str(message.tool_calls))
        if not parts or len(parts[-1]) == AT_ONCE or size > room:
            parts.append([])
            room = CHARS_AT_ONCE
        parts[-1].append(message)
        room -= size
    return parts


def _count_imported(found: formats.Imported) -> Json:
    brought = len(found.messages) + len(found.turns)
    return {"imported": len(found.messages), "skipped": found.skipped, "brought": brought}


def _add_messages(tx: Tx, row: SessionRow, messages: Sequence[MessageRow]) -> None:
    seqs = [
        tx.add_message(replace(message, session_id=row.session_id, ts=message.ts or row.created_at))
        for message in messages
    ]
    if seqs:
        tx.bring(row.session_id, after=seqs[0] - 1, last=seqs[-1], turns=())


def _add_turns(tx: Tx, session_id: str, turns: Sequence[TurnRow]) -> None:
    for turn in turns:
        tx.add_turn(replace(turn, session_id=session_id))
    if turns:
        tx.bring(session_id, after=0, last=0, turns=[turn.turn_index for turn in turns])
        session = need_session(tx, session_id)
        started = sum(turn.started_at is not None for turn in turns)
        last = max(turn.turn_index for turn in turns)
        tx.change_session(
            session_id, last_turn=max(last, session.last_turn), turn_count=session.turn_count + started
        )
