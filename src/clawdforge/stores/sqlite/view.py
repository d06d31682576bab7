"""One app's rows, read from one snapshot."""

from collections.abc import Collection, Iterable, Sequence

import orjson

from clawdforge.core.models.events import StoredEvent
from clawdforge.core.models.rows import (
    AppRow,
    FileRow,
    Hit,
    MessageRow,
    PauseRow,
    PendingPermission,
    PermissionRow,
    PersonaRow,
    SessionRow,
    TurnRow,
)
from clawdforge.core.models.workspaces import Area
from clawdforge.core.ports import Shown
from clawdforge.stores.sqlite.blobs import BlobRows
from clawdforge.stores.sqlite.budgets import BudgetRows
from clawdforge.stores.sqlite.changes import ChangeRows
from clawdforge.stores.sqlite.event_pages import END, EventPages
from clawdforge.stores.sqlite.links import LinkRows
from clawdforge.stores.sqlite.message_pages import MessagePages
from clawdforge.stores.sqlite.nodes import LeaseRows
from clawdforge.stores.sqlite.own_rows import Room
from clawdforge.stores.sqlite.packs import EventRow
from clawdforge.stores.sqlite.rows import Value, area_values, to_json
from clawdforge.stores.sqlite.schedules import ScheduleRows
from clawdforge.stores.sqlite.search import build_match, from_cursor, to_cursor
from clawdforge.stores.sqlite.session_pages import SessionPages
from clawdforge.stores.sqlite.statements import Statements
from clawdforge.stores.sqlite.stored_bytes import bytes_of_app
from clawdforge.stores.sqlite.usage import UsageRows
from clawdforge.stores.sqlite.webhooks import WebhookRows
from clawdforge.wire.base import Micros
from clawdforge.wire.disk import DiskForm
from clawdforge.wire.event_forms import Form
from clawdforge.wire.message import Role
from clawdforge.wire.turn import TurnState

SLICE_ROWS = 200
SLICE_BYTES = 1 << 20
LAST_CHAR = "\U0010ffff"


class SqliteView(
    BlobRows,
    BudgetRows,
    MessagePages,
    SessionPages,
    ChangeRows,
    LeaseRows,
    LinkRows,
    ScheduleRows,
    UsageRows,
    WebhookRows,
):
    def __init__(self, db: Statements, app: str) -> None:
        super().__init__(db, app)
        self._pages = EventPages(db, app)

    def app_row(self) -> AppRow | None:
        return self._get(self._q.app, "app")

    def pauses(self) -> list[PauseRow]:
        return self._list(self._q.pause, "pauses")

    def session(self, session_id: str) -> SessionRow | None:
        return self._get(self._q.session, "session", session=session_id)

    def count_open_sessions(self) -> int:
        row = self._db.row(self._q.system["count_open_sessions"], {})
        return int(row[0]) if row else 0

    def is_taken(self, area: Area) -> bool:
        row = self._db.row(self._q.system["is_taken"], {"app": self.app, **area_values(area)})
        return row is None or bool(row[0])

    def count_app_sessions(self) -> int:
        return self._number("count_app_sessions")

    def count_ttl_sessions(self) -> int:
        return self._number("count_ttl_sessions")

    def turn(self, session_id: str, turn_index: int) -> TurnRow | None:
        return self._get(self._q.turn, "turn", session=session_id, turn=turn_index)

    def turn_outline(self, session_id: str, turn_index: int) -> TurnRow | None:
        return self._get(self._q.turn, "turn_outline", session=session_id, turn=turn_index)

    def turns(self, session_id: str, *, after: int = 0, limit: int = 100) -> list[TurnRow]:
        return self._list(self._q.turn, "turns", session=session_id, after=after, limit=limit)

    def turn_page(
        self, session_id: str, *, after: int, limit: int, max_bytes: int
    ) -> tuple[list[TurnRow], bool]:
        return self._page(self._q.turn, "turns", limit, max_bytes, session=session_id, after=after)

    def turns_from(self, session_id: str, turn_index: int) -> list[TurnRow]:
        return self.turns(session_id, after=turn_index - 1, limit=END)

    def active_turn(self, session_id: str) -> TurnRow | None:
        return self._get(self._q.turn, "active_turn", session=session_id)

    def queued_turns(self, session_id: str, limit: int = END) -> list[TurnRow]:
        return self._list(self._q.turn, "queued_turns", session=session_id, limit=limit)

    def next_queued(self, session_id: str, first: Collection[str]) -> TurnRow | None:
        return self._get(self._q.turn, "next_queued", session=session_id, first=to_json(list(first)))

    def queue(self, session_id: str, first: Collection[str]) -> list[tuple[int, bool]]:
        rows = self._rows("queue", session=session_id, first=to_json(list(first)))
        return [(int(index), bool(goes_first)) for index, goes_first in rows]

    def count_queued(self, session_id: str, policies: Collection[str] | None = None) -> int:
        wanted = None if policies is None else to_json(list(policies))
        return self._number("count_queued", session=session_id, policies=wanted)

    def turn_by_key(self, session_id: str, key: str) -> TurnRow | None:
        return self._get(self._q.turn, "turn_by_key", session=session_id, key=key)

    def turns_in_flight(self) -> int:
        return self._number("turns_in_flight")

    def events(self, session_id: str, *, after: int, limit: int, max_bytes: int) -> list[StoredEvent]:
        rows = self._pages.page(session_id, after=max(after, 0), limit=limit, max_bytes=max_bytes)
        return [_stored(row) for row in rows]

    def count_brought(self, session_id: str) -> int:
        lowest = self._pages.lowest(session_id)
        return 0 if lowest is None else max(0, 1 - lowest)

    def turn_events(
        self, session_id: str, turn_index: int, *, after: int, limit: int, max_bytes: int
    ) -> list[StoredEvent]:
        turn = self.turn(session_id, turn_index)
        if turn is None or (turn.first_seq is None and turn.state in (TurnState.QUEUED, TurnState.ENDED)):
            return []  # it never began, or began in the session that this one was forked from
        rows = self._pages.page(
            session_id,
            after=max(after, (turn.first_seq or 0) - 1),
            last=turn.last_seq or END,
            limit=limit,
            max_bytes=max_bytes,
            turn=turn_index,
            by_agent=1,
        )
        return [_stored(row) for row in rows]

    def last_ended_seq(self, session_id: str, before: Micros) -> int:
        return self._number("last_ended_seq", session=session_id, before=before)

    def messages(
        self, session_id: str, *, after: int = 0, limit: int = 1000, show: Shown = "visible"
    ) -> list[MessageRow]:
        return self._list(self._q.message, f"messages_{show}", session=session_id, after=after, limit=limit)

    def last_messages(self, session_id: str, limit: int, *, show: Shown = "visible") -> list[MessageRow]:
        found = self._list(self._q.message, f"last_messages_{show}", session=session_id, limit=limit)
        return found[::-1]

    def last_message(self, session_id: str, role: str, *, before: int | None = None) -> MessageRow | None:
        below = END if before is None else before
        return self._get(self._q.message, "last_message", session=session_id, role=role, before=below)

    def pending_prompt(self, session_id: str) -> int | None:
        return self._number("pending_prompt", session=session_id) or None

    def messages_from(self, session_id: str, seq: int, *, show: Shown = "visible") -> list[MessageRow]:
        return self.messages(session_id, after=seq - 1, limit=END, show=show)

    def last_prompts(self, session_id: str, count: int) -> tuple[MessageRow, MessageRow] | None:
        first = self._number("first_of_last", session=session_id, role=Role.USER.value, count=count)
        earliest = self._get(self._q.message, "message", session=session_id, seq=first)
        last = self.last_message(session_id, Role.USER.value)
        return (earliest, last) if earliest and last else None

    def numbers_from(self, session_id: str, seq: int) -> tuple[list[int], list[int]]:
        found = [
            orjson.loads(row[0])
            for name in ("seqs_from", "turns_said_from")
            for row in self._rows(name, session=session_id, first=seq)
        ]
        return found[0], sorted(set(found[1]))

    def has_finished_changes(self, session_id: str) -> bool:
        return self._number("has_finished_changes", session=session_id) == 1

    def fits_at_once(self, session_id: str, seqs: Sequence[int]) -> bool:
        if not seqs:
            return True
        if self._number("is_hidden", session=session_id, seq=seqs[0]):
            return False
        if self._shows_from(session_id, seqs[0]):
            return True  # one turn was cut; marks, which go to the end, would cut also what others said since
        return len(seqs) <= SLICE_ROWS and self._named_end(session_id, seqs) == seqs[-1]

    def _shows_from(self, session_id: str, seq: int) -> bool:
        """Whether a message from this one on is visible."""
        params: dict[str, Value] = {"app": self.app, "session": session_id, "after": seq - 1}
        return bool(list(self._db.rows(self._q.sets["slice_visible"], {**params, "before": END, "limit": 1})))

    def _named_end(self, session_id: str, seqs: Sequence[int]) -> int:
        """The last of these messages that fits into one slice with those before it."""
        params: dict[str, Value] = {"app": self.app, "session": session_id, "seqs": to_json(list(seqs))}
        return last_fitting(self._db.rows(self._q.sets["slice_named"], params))

    def last_of_fork(self, session_id: str, through_turn: int) -> int:
        session = self.session(session_id)
        before = self._number("first_message_after_turn", session=session_id, through=through_turn)
        return 0 if session is None else before - 1 if before else session.last_message

    def last_spoken_turn(self, session_id: str, *, before: int | None = None) -> int:
        below = END if before is None else before
        return next(
            (int(turn) for (turn,) in self._rows("last_spoken_turn", session=session_id, before=below)), 0
        )

    def permission(self, session_id: str, permission_id: str) -> PermissionRow | None:
        return self._get(self._q.permission, "permission", session=session_id, permission=permission_id)

    def permissions(self, session_id: str, *, state: str | None = None) -> list[PermissionRow]:
        if state == "pending":
            return self._list(self._q.permission, "permissions_pending", session=session_id)
        return self._list(self._q.permission, "permissions", session=session_id, state=state)

    def count_pending(self, session_id: str) -> int:
        return self._number("count_pending", session=session_id)

    def pending_permissions(
        self, *, limit: int, max_bytes: int, cursor: str | None = None
    ) -> tuple[list[PendingPermission], str | None]:
        at, last = (-END, "") if cursor is None else from_cursor(cursor, int, str)
        values = {"app": self.app, "limit": limit + 1, "requested_at": at, "permission_id": last}
        room = Room(limit, max_bytes)
        rows = self._db.rows(self._q.view["pending_of_app"], values, room.fits)
        found = [PendingPermission(self._q.permission.read(row[2:]), row[0], row[1]) for row in rows]
        if not room.is_over or not found:
            return found, None
        return found, to_cursor(found[-1].row.requested_at, found[-1].row.permission_id)

    def is_granted(self, session_id: str, tool: str, kind: str | None) -> bool:
        return any(self._rows("is_granted", session=session_id, tool=tool, kind=kind))

    def file(self, file_token: str) -> FileRow | None:
        return self._get(self._q.file, "file", file=file_token)

    def file_beginning(self, mark: str) -> FileRow | None:
        return self._get(self._q.file, "file_beginning", mark=mark, beyond=mark + LAST_CHAR)

    def stored_bytes(self) -> dict[DiskForm, int]:
        return bytes_of_app(self._db, self.app)

    def persona(self, name: str) -> PersonaRow | None:
        return self._get(self._q.persona, "persona", name=name)

    def secrets(self) -> dict[str, str]:
        return {str(name): str(value) for name, value in self._rows("secrets")}

    def personas(self) -> list[PersonaRow]:
        return self._list(self._q.persona, "personas")

    def search(
        self, q: str, *, limit: int, cursor: str | None = None, session_id: str | None = None
    ) -> tuple[list[Hit], str | None]:
        match = build_match(q)
        spans = self._rows("ids_of_app")
        if session_id is not None:
            spans += self._rows("ids_of_session", session=session_id)
        if match is None or len(spans) != 1 + (session_id is not None) or None in spans[-1]:
            return [], None
        first, last = max(span[0] for span in spans), min(span[1] for span in spans)
        if cursor is not None:
            last = min(last, from_cursor(cursor, int)[0] - 1)
        rows = self._rows("search", match=match, first=first, last=last, session=session_id, limit=limit + 1)
        page = rows[:limit]
        more = len(rows) > limit and page
        return [Hit(*row[:-1]) for row in page], to_cursor(page[-1][-1]) if more else None


def last_fitting(rows: Iterable[tuple[int, int]]) -> int:
    """Of messages as (seq, bytes), the last that belongs to the first slice; 0 when there are none."""
    last, room = 0, SLICE_BYTES
    for seq, size in rows:
        room -= size
        if last and room < 0:
            break
        last = seq
    return last


def _stored(row: EventRow) -> StoredEvent:
    form = Form.COMPACT if row.compact else Form.NESTED
    return StoredEvent(row.seq, row.type, row.turn, row.data, form)
