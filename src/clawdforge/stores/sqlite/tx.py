"""One app's changes, inside the transaction of one job."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from clawdforge.core.clock import Clock
from clawdforge.core.models.blobs import PublicationRow, owners_of
from clawdforge.core.models.events import Draft, StoredEvent
from clawdforge.core.models.nodes import WishRow
from clawdforge.core.models.rows import (
    FileRow,
    LinkRow,
    MessageRow,
    PermissionRow,
    PersonaRow,
    RunRow,
    SessionRow,
    TurnRow,
)
from clawdforge.core.ports import LeaseLost
from clawdforge.stores.sqlite.audit import add_entry, read_head
from clawdforge.stores.sqlite.blobs import BlobChanges
from clawdforge.stores.sqlite.budgets import BudgetChanges
from clawdforge.stores.sqlite.changes import Touched, forget_changes
from clawdforge.stores.sqlite.job_reads import JobReads
from clawdforge.stores.sqlite.lasting import Lasting
from clawdforge.stores.sqlite.links import LinkChanges
from clawdforge.stores.sqlite.packing import Slice, place_pack
from clawdforge.stores.sqlite.queries import MINE
from clawdforge.stores.sqlite.rows import Codec, Value
from clawdforge.stores.sqlite.schedules import ScheduleChanges
from clawdforge.stores.sqlite.statements import NewEvents, Statements
from clawdforge.stores.sqlite.stored_bytes import set_file_bytes
from clawdforge.stores.sqlite.unwritten import GATHERED
from clawdforge.stores.sqlite.usage import UsageChanges
from clawdforge.stores.sqlite.webhooks import WebhookChanges
from clawdforge.wire.base import Json, Micros
from clawdforge.wire.disk import DiskForm
from clawdforge.wire.errors import NotFound, PermissionNotFound, SessionNotFound, TurnNotFound
from clawdforge.wire.event import EventType, number
from clawdforge.wire.event_forms import is_from_agent

STATE = frozenset({"head", "fence", "deleted_at"})
"""Columns of a session that `_state` depends on."""
WRITTEN = {kind: (kind.value, int(is_from_agent(kind.value))) for kind in EventType}
"""How the kind of an event stands in its row, and whether the agent made it: asked for each chunk."""

WITH_TURN = frozenset({"prompt", "files"})
"""Columns of a turn with which triggers change other tables."""

SHOWING = frozenset({"cut", "archived"})
"""Columns of a message by which its session counts it."""
LONG_CHARS = 8192
"""Of a prompt that stands beside its turn; a shorter one takes little more than a page of the turn's own."""
PURGED = {"purge_packs": 50, "purge_messages": 100}
"""At once, fewer than of other rows: a pack has many pages, and a message is in the full-text index too."""


_by_kind_and_turn: Final = itemgetter(0, 1)  # of a draft


class SqliteTx(
    JobReads, BlobChanges, BudgetChanges, LinkChanges, ScheduleChanges, UsageChanges, WebhookChanges
):
    def __init__(self, db: Statements, app: str, clock: Clock, lasting: Lasting | None = None) -> None:
        super().__init__(db, app, lasting)
        self._clock = clock
        self.appended: dict[str, list[StoredEvent]] = {}
        self._touched = Touched()

    def add_session(self, row: SessionRow) -> None:
        self._check_own(row.app_name)
        self._insert(self._q.session, row)

    def change_session(self, session_id: str, **changes: Any) -> None:
        if changes.keys() <= GATHERED:
            self._need_session(session_id)
            self._gather(session_id, self._q.session.write(changes))
            return
        if self._q.sessions != self._q.session.table:  # what waits may stand in the other table
            waiting = {name: changes.pop(name) for name in changes.keys() & GATHERED}
            if waiting:
                self.change_session(session_id, **waiting)
        self._unwritten.write()
        known = self._knows_sessions() and changes.keys().isdisjoint(STATE)
        self._change(
            self._q.session, f"session_id = {MINE}", {"session": session_id}, changes, SessionNotFound
        )
        if known:
            self._keep_states()
        if changes.get("deleted_at") is not None:
            self._touched.note_deleted(session_id)

    def reveal_session(self, session_id: str) -> None:
        super().reveal_session(session_id)
        self._touched.note_revealed(session_id)

    def append(
        self,
        session_id: str,
        drafts: Sequence[Draft],
        *,
        fence: int | None = None,
        written: int | None = None,
    ) -> int:
        head, current = self._state(session_id)
        if fence is not None and fence != current:
            raise LeaseLost
        if not drafts:
            return head
        stored: list[StoredEvent] = []
        runs: list[NewEvents] = []
        for (kind, turn), alike in groupby(drafts, _by_kind_and_turn):
            name, by_agent = WRITTEN[kind]
            first = head + 1
            data = [number(seq, body) for seq, (_, _, body) in enumerate(alike, first)]
            stored += [StoredEvent(seq, name, turn, each) for seq, each in enumerate(data, first)]
            runs.append(NewEvents(session_id, first, turn, name, by_agent, data))
            head += len(data)
        self._unwritten.append(session_id, runs, head, self._clock.now())
        if written is not None:
            self._unwritten.change(session_id, {"written": written})
        self._sessions.pop(session_id, None)
        self._states[session_id] = (head, current)
        self.appended.setdefault(session_id, []).extend(stored)
        self._touched.note_events(session_id, drafts)
        return head

    def claim(self, session_id: str, node: str) -> int:
        head, fence = self._state(session_id)
        fence += self._rise()
        self._gather(session_id, {"holder": node, "fence": fence, "written": 0})
        self._states[session_id] = (head, fence)
        return fence

    def _rise(self) -> int:
        """How far a claim raises the fence. A file that is put back to an older state has no other server."""
        return 1

    def add_turn(self, row: TurnRow) -> None:
        self._need_session(row.session_id)
        values = self._q.turn.values(row)
        if self._q.keeps_beside and len(row.prompt) > LONG_CHARS:
            self._run("keep_prompt", session=row.session_id, turn=row.turn_index, prompt=row.prompt)
            values["prompt"] = b""  # see the migration `long_prompts`
        self._unwritten.add_turn(row.session_id, row.turn_index, values)
        self._forget_turns()

    def change_turn(self, session_id: str, turn_index: int, **changes: Any) -> None:
        waiting = self._unwritten.turn(session_id, turn_index)
        if waiting is not None and changes.keys() <= self._q.turn.changeable - WITH_TURN:
            waiting.update(self._q.turn.write(changes))
            return
        key: dict[str, Value] = {"session": session_id, "turn": turn_index}
        where = f"session_id = {MINE} AND turn_index = :turn"
        self._change(self._q.turn, where, key, changes, TurnNotFound)

    def add_message(self, row: MessageRow) -> int:
        self._need_session(row.session_id)
        values = self._q.message.values(row)
        session = self._stored.get(row.session_id)  # as it is: that the session is there was just looked up
        counted = self._counted.get(row.session_id, {})
        if not row.seq:
            values["seq"] = self._next_seq(row.session_id, session, counted)
        values["id"] = number = self._last_message_id() + 1
        self._db.run(self._q.add_message, values)
        self._lasting.keep("messages", self.app, number)
        self._keep_states()
        seq = int(values["seq"] or 0)
        if session is not None:
            self._stored[row.session_id] = session
            self._counted[row.session_id] = _count_message(session, counted, seq, row)
        return seq

    def _next_seq(
        self, session_id: str, session: SessionRow | None, counted: Mapping[str, int]
    ) -> int | None:
        if session is not None:
            return counted.get("last_message", session.last_message) + 1
        found = self._read_session(self._q.tx["next_seq"], session_id)
        return found[0] if found else None

    def change_messages(self, session_id: str, seqs: Sequence[int], **changes: Any) -> None:
        self._need_session(session_id)
        assignments, values = self._q.message.changes(changes)
        if assignments and seqs:
            sql = f"UPDATE messages SET {assignments} WHERE session_id = {MINE} AND seq = :seq"  # noqa: S608 - checked names
            key: dict[str, Value] = {"app": self.app, "session": session_id, **values}
            self._db.run_many(sql, [{**key, "seq": seq} for seq in seqs])
            if changes.keys().isdisjoint(SHOWING):
                self._keep_sessions()
            else:
                self._keep_states()

    def add_permission(self, row: PermissionRow) -> None:
        self._need_session(row.session_id)
        self._insert(self._q.permission, row)
        self._note_permission(row.session_id, row.permission_id)

    def change_permission(self, session_id: str, permission_id: str, **changes: Any) -> None:
        key: dict[str, Value] = {"session": session_id, "permission": permission_id}
        where = f"session_id = {MINE} AND permission_id = :permission"
        self._change(self._q.permission, where, key, changes, PermissionNotFound)
        self._note_permission(session_id, permission_id)

    def _note_permission(self, session_id: str, permission_id: str) -> None:
        self._touched.note(session_id, permission_id)
        self._touched.note(session_id)  # which shows how many wait

    def write_changes(self) -> bool:
        """At the end of a job: write what waits, and number what lists would show otherwise.

        Whether there was anything that they would.
        """
        self._unwritten.write()
        return self._touched.write(self._db, self.app, self._clock.now())

    def forget_changes(self, before: Micros, limit: int) -> bool:
        return forget_changes(self._db, self.app, before, limit)

    def add_link(self, row: LinkRow) -> None:
        self._check_own(row.app_name)
        self._need_session(row.session_id)
        self._insert(self._q.link, row)

    def add_wish(self, row: WishRow) -> None:
        self._check_own(row.app_name)
        self._need_session(row.session_id)
        self._insert(self._q.wish, row)

    def add_file(self, row: FileRow) -> None:
        self._check_own(row.app_name)
        self._insert(self._q.file, row)

    def remove_file(self, file_token: str) -> None:
        if self._run("remove_file", file=file_token):
            self.use_blobs(file_token, (), self._clock.now())

    def publish(self, row: PublicationRow) -> None:
        self._need_session(row.session_id)
        self._db.run(self._q.replacing(self._q.publication), self._q.publication.values(row))

    def put_persona(self, row: PersonaRow) -> None:
        self._check_own(row.app_name)
        self._db.run(self._q.replacing(self._q.persona), self._q.persona.values(row))

    def remove_persona(self, name: str) -> bool:
        return self._run("remove_persona", name=name) > 0

    def add_run(self, row: RunRow) -> None:
        self._check_own(row.app_name)
        self._insert(self._q.run, row)

    def audit(self, session_id: str | None, event: str, at: Micros, details: Json) -> None:
        head = self._lasting.find("session_events", "", lambda: read_head(self._db))
        head = add_entry(self._db, head, self.app, session_id, event, at, details)
        self._lasting.keep("session_events", "", head)

    def set_file_bytes(self, session_id: str, sizes: Mapping[DiskForm, int]) -> None:
        set_file_bytes(self._db, self.app, session_id, sizes)

    def place_pack(self, chosen: Slice, packed: bytes) -> bool:
        return place_pack(self._db, self.app, chosen, packed)

    def purge(self, session_id: str, limit: int) -> bool:
        row = self._db.row(self._q.tx["purge_state"], {"app": self.app, "session": session_id})
        if row is None:
            return True
        if row[0] is None:
            raise ValueError("only a deleted session can be purged")
        for name in ("purge_events", "purge_packs", "purge_messages", "purge_turns", "purge_permissions"):
            most = min(limit, PURGED.get(name, limit))
            removed = self._run(name, session=session_id, limit=most)
            limit -= removed
            if limit <= 0 or removed == most:
                return False
        for (budget_id,) in self._db.rows(
            self._q.tx["budgets_of_session"], {"app": self.app, "session": session_id}
        ):
            self.remove_budget(budget_id)
        self._change_blobs("purge_publication", session=session_id)
        for owner in owners_of(session_id):
            self.use_blobs(owner, (), self._clock.now())
        self._run("purge_session", session=session_id)
        return True

    def _insert(self, codec: Codec[Any], row: Any) -> None:
        self._db.run(codec.insert, codec.values(row))

    def _change(
        self,
        codec: Codec[Any],
        where: str,
        key: dict[str, Value],
        changes: dict[str, Any],
        missing: type[NotFound],
    ) -> None:
        assignments, values = codec.changes(changes)
        if not assignments:
            return
        sql = f"UPDATE {codec.table} SET {assignments} WHERE {where}"  # noqa: S608 - names checked by the codec
        if self._db.run(sql, {"app": self.app, **key, **values}) == 0:
            raise missing


def _count_message(
    session: SessionRow, counted: Mapping[str, int], seq: int, row: MessageRow
) -> dict[str, int]:
    """What its trigger has made of a session when a message was added, after those that were counted."""
    last = counted.get("last_message", session.last_message)
    count = counted.get("message_count", session.message_count)
    return {"last_message": max(last, seq), "message_count": count + int(not row.cut and not row.archived)}
