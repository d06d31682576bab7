"""Messages as rows: posts one without a turn, reads a page, lists a session's newest, follows them by seq."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from clawdforge.core.clock import Clock
from clawdforge.core.log import LogService
from clawdforge.core.models.events import draft
from clawdforge.core.models.rows import MessageRow, SessionQuery, SessionRow
from clawdforge.core.pacing.long_reads import read_rows
from clawdforge.core.pacing.loop_turns import LoopTurns
from clawdforge.core.ports import Store, Tx, View
from clawdforge.core.rules.paging import MessageSpan, Place, read_messages
from clawdforge.core.rules.quotas import NO_QUOTAS, Quotas
from clawdforge.core.rules.transcripts import (
    Transcript,
    describe,
    interleave,
    read_before,
    read_newest,
    show,
)
from clawdforge.core.rules.turns import make_title, need_open, need_session
from clawdforge.core.tail import Tail
from clawdforge.wire.base import Micros
from clawdforge.wire.errors import InvalidRequest, SessionBusy
from clawdforge.wire.event import EventType
from clawdforge.wire.message import Role, estimate_tokens

PAGE_MESSAGES: Final = 200
TRIES: Final = 5
MAX_CHILDREN: Final = 200
NEWS: Final = frozenset(
    {
        EventType.TURN_STARTED,
        EventType.TURN_ENDED,
        EventType.MESSAGE_POSTED,
        EventType.HISTORY_COMPACTED,
        EventType.HISTORY_RESTORED,
    }
)
"""Events that come with a new message; all others leave the transcript unchanged or shorten it."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A session as a list shows it."""

    row: SessionRow
    last_message_at: Micros | None


@dataclass(frozen=True, slots=True)
class Detail:
    """A session, its newest messages, and its sub-sessions."""

    summary: Summary
    messages: Sequence[MessageRow]
    children: Sequence[Summary]


class MessageService:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        log: LogService,
        turns: LoopTurns,
        quotas: Quotas = NO_QUOTAS,
    ) -> None:
        self._store = store
        self._clock = clock
        self._log = log
        self._turns = turns
        self._quotas = quotas

    async def post(self, app: str, session_id: str, content: str) -> MessageRow:
        """Store a message without a turn. Nothing runs, and no agent ever sees it."""
        now = self._clock.now()

        def work(tx: Tx) -> MessageRow:
            self._quotas.check_room(tx)
            return _post(tx, session_id, content, now)

        return await self._store.write(app, work)

    async def page(
        self, app: str, session_id: str, place: Place, limit: int, *, archived: bool = False
    ) -> MessageSpan:
        def work(view: View) -> MessageSpan:
            need_session(view, session_id)
            return read_messages(view, session_id, place, limit, "all" if archived else "visible")

        return await read_rows(self._store, app, limit, work, partial(_count_messages, session_id))

    async def list(self, app: str, query: SessionQuery) -> list[Summary]:
        return await read_rows(self._store, app, query.limit, lambda view: _summaries(view, query))

    async def detail(self, app: str, session_id: str, limit: int, *, archived: bool) -> Detail:
        def work(view: View) -> Detail:
            row = need_session(view, session_id)
            children = SessionQuery(parent=session_id, limit=MAX_CHILDREN)
            return Detail(
                _summary(view, row),
                view.last_messages(session_id, limit, show="all" if archived else "visible"),
                _summaries(view, children),
            )

        return await read_rows(self._store, app, limit, work)

    async def transcript(
        self,
        app: str,
        session_id: str,
        limit: int | None = None,
        *,
        before: int | None = None,
        with_cut_off: bool = False,
    ) -> Transcript:
        """The newest `limit` entries, those before a number, or all: a page at a time, so that nobody waits.

        A prompt whose turn was cut off counts as said when the next begins, or at once if `with_cut_off`.
        """
        if limit is not None:
            if before is None:
                return await read_rows(
                    self._store,
                    app,
                    limit,
                    lambda view: read_newest(view, session_id, limit, with_cut_off=with_cut_off),
                )
            return await read_rows(
                self._store,
                app,
                limit,
                lambda view: read_before(view, session_id, before, limit, with_cut_off=with_cut_off),
            )
        for _ in range(TRIES):
            begun, rows = await self._store.read(
                app,
                lambda view: (
                    show(view, session_id, with_cut_off=with_cut_off),
                    view.messages(session_id, limit=PAGE_MESSAGES),
                ),
            )
            page = rows
            while len(page) == PAGE_MESSAGES:
                await self._turns.slice(app)  # a read does not pause by itself
                after = page[-1].seq
                page = await self._store.read(
                    app,
                    lambda view, after=after: view.messages(session_id, after=after, limit=PAGE_MESSAGES),  # type: ignore[misc]
                )
                rows += page
            found = await self._store.read(
                app, lambda view: show(view, session_id, with_cut_off=with_cut_off)
            )
            if _stage(found) == _stage(begun):
                return replace(found, entries=interleave(found, rows))
        raise SessionBusy("the history of this session keeps changing; try again later")

    async def overview(
        self, app: str, query: SessionQuery, *, with_cut_off: bool = False
    ) -> Sequence[Transcript]:
        """A page of sessions without what was said in them; endings are not counted."""

        def work(view: View) -> Sequence[Transcript]:
            rows, _ = view.sessions(query)
            return [describe(view, row, with_cut_off=with_cut_off) for row in rows]

        return await read_rows(self._store, app, query.limit, work)

    async def check_cursor(self, app: str, session_id: str, after: int) -> None:
        """Raise if no message with that seq exists yet."""
        row = await self._store.read(app, lambda view: need_session(view, session_id))
        if after > row.last_message:
            raise InvalidRequest(f"last_seq is beyond the last message, which is {row.last_message}")

    async def follow(self, app: str, session_id: str, after: int) -> AsyncIterator[Sequence[MessageRow]]:
        """Yield batches of visible messages after a seq, until the session is deleted.

        A message and the event that tells of it are one commit, so the log's signal is enough.
        """
        with self._log.tail(session_id) as tail:
            while not tail.gone:
                added = tail.added
                page = partial(_page, session_id=session_id, after=after)
                rows, head = await self._store.read(app, page)
                if rows:
                    after = rows[-1].seq
                    yield rows
                else:
                    await _wait_for_news(tail, added, head)


async def _wait_for_news(tail: Tail, added: asyncio.Event, head: int) -> None:
    """Wait until there may be a new message, if need be for ever. Streamed text alone is none."""
    while True:
        await added.wait()
        added, fresh = tail.added, tail.events_after(head)
        if tail.gone or fresh is None or any(event.type in NEWS for event in fresh):
            return
        head = fresh[-1].seq if fresh else head


def _count_messages(session_id: str, view: View) -> int:
    return need_session(view, session_id).last_message


def _page(view: View, session_id: str, after: int) -> tuple[Sequence[MessageRow], int]:
    session = need_session(view, session_id)
    return view.messages(session_id, after=after, limit=PAGE_MESSAGES), session.head


def _post(tx: Tx, session_id: str, content: str, at: Micros) -> MessageRow:
    session = need_open(tx, session_id)
    tokens = estimate_tokens(content)
    row = MessageRow(session_id=session_id, role=Role.USER, content=content, ts=at, token_count=tokens)
    seq = tx.add_message(row)
    fields = {"message": seq, "role": row.role, "content": content}
    tx.append(session_id, [draft(EventType.MESSAGE_POSTED, None, at, fields)])
    tx.change_session(
        session_id,
        title=session.title or make_title(content),
        redo=(),
        total_input_tokens=session.total_input_tokens + tokens,
    )
    return replace(row, seq=seq)


def _stage(found: Transcript) -> tuple[object, ...]:
    """What changes whenever the messages do."""
    row = found.state.row
    return row.context, row.redo, row.last_message, row.message_count, found.unsaid, len(found.endings)


def _summaries(view: View, query: SessionQuery) -> list[Summary]:
    return [_summary(view, row) for row in view.sessions(query)[0]]


def _summary(view: View, row: SessionRow) -> Summary:
    newest = view.last_messages(row.session_id, 1, show="all")
    return Summary(row, newest[-1].ts if newest else None)
