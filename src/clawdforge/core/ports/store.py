"""What core asks of a store. Implemented in `stores`.

A store runs *work*: a plain function over a snapshot (`View`) or inside a transaction (`Tx`). The rules
of the product live in such functions, in core; a store knows rows, not rules. Both are bound to one app,
so that no query can reach another's rows. Work may be run again or elsewhere (another thread): it must
touch nothing but its argument. What spans apps is in `system.py`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from clawdforge.core.histogram import Histogram
from clawdforge.core.models.events import Draft, StoredEvent
from clawdforge.core.models.rows import (
    AppRow,
    Commit,
    FileRow,
    Hit,
    MessageRow,
    PauseRow,
    PermissionRow,
    PersonaRow,
    RunRow,
    SessionQuery,
    SessionRow,
    TurnRow,
)
from clawdforge.core.models.workspaces import Area
from clawdforge.core.ports.blobs import BlobTx, BlobView
from clawdforge.core.ports.budgets import BudgetTx, BudgetView
from clawdforge.core.ports.changes import ChangeTx, ChangeView
from clawdforge.core.ports.links import LinkTx, LinkView
from clawdforge.core.ports.nodes import LeaseTx, LeaseView, Peers
from clawdforge.core.ports.pages import PageView, Shown
from clawdforge.core.ports.schedules import ScheduleTx, ScheduleView
from clawdforge.core.ports.system import SystemTx, SystemView
from clawdforge.core.ports.usage import UsageTx, UsageView
from clawdforge.core.ports.webhooks import WebhookTx, WebhookView
from clawdforge.wire.base import Json, Micros
from clawdforge.wire.disk import DiskForm
from clawdforge.wire.errors import ForgeError

T = TypeVar("T")


class LeaseLost(ForgeError):
    """Another node holds this session now. It never leaves the process."""


class View(
    BlobView,
    BudgetView,
    PageView,
    ChangeView,
    LeaseView,
    LinkView,
    ScheduleView,
    UsageView,
    WebhookView,
    Protocol,
):
    """One app's rows in one consistent snapshot. Deleted sessions are not there."""

    app: str

    def app_row(self) -> AppRow | None: ...
    def pauses(self) -> list[PauseRow]:
        """Those that concern this app: of everybody, of agents, and its own. The widest come first."""
        ...

    def session(self, session_id: str) -> SessionRow | None: ...
    def sessions(self, query: SessionQuery) -> tuple[list[SessionRow], str | None]:
        """A page and the cursor of the next one, last activity (`updated_at`) first."""
        ...

    def count_open_sessions(self) -> int:
        """Open sessions with retention `ttl`, of all apps: what the cap counts."""
        ...

    def count_app_sessions(self) -> int:
        """Open sessions of this app, for its own limit."""
        ...

    def count_ttl_sessions(self) -> int:
        """Those of them with retention `ttl`."""
        ...

    def is_taken(self, area: Area) -> bool:
        """Whether an open session of another app works in this folder, above it or below it."""
        ...

    def turn(self, session_id: str, turn_index: int) -> TurnRow | None: ...
    def turn_outline(self, session_id: str, turn_index: int) -> TurnRow | None:
        """The turn without its prompt, which may be of megabytes."""

    def turns(self, session_id: str, *, after: int = 0, limit: int = 100) -> list[TurnRow]: ...
    def turn_page(
        self, session_id: str, *, after: int, limit: int, max_bytes: int
    ) -> tuple[list[TurnRow], bool]:
        """At least one turn if there is one, then as many as fit; and whether there are more."""
        ...

    def turns_from(self, session_id: str, turn_index: int) -> list[TurnRow]: ...
    def active_turn(self, session_id: str) -> TurnRow | None:
        """The turn that is running or waiting; there is at most one."""
        ...

    def queued_turns(self, session_id: str, limit: int = ...) -> list[TurnRow]:
        """In the order in which they came."""
        ...

    def next_queued(self, session_id: str, first: Collection[str]) -> TurnRow | None:
        """The one that came first, but automatic ones and those with such an `if_busy` before others."""
        ...

    def queue(self, session_id: str, first: Collection[str]) -> list[tuple[int, bool]]:
        """The index of every queued turn, rising, and whether it goes first as in `next_queued`."""
        ...

    def count_queued(self, session_id: str, policies: Collection[str] | None = None) -> int:
        """How many turns wait; with `policies`, of those with such an `if_busy`."""
        ...

    def turn_by_key(self, session_id: str, key: str) -> TurnRow | None: ...
    def turns_in_flight(self) -> int:
        """Queued, running and waiting turns of the app."""
        ...

    def events(self, session_id: str, *, after: int, limit: int, max_bytes: int) -> list[StoredEvent]:
        """Rising by seq; at least one event if there is one, then as many as fit into `max_bytes`."""
        ...

    def count_brought(self, session_id: str) -> int:
        """How many events tell what the session began with; see `Tx.bring`."""
        ...

    def last_ended_seq(self, session_id: str, before: Micros) -> int:
        """The last number of a turn that ended before then, of those the one that came last; 0 without."""
        ...

    def turn_events(
        self, session_id: str, turn_index: int, *, after: int, limit: int, max_bytes: int
    ) -> list[StoredEvent]:
        """Only what the agent sent in that turn."""
        ...

    def messages(
        self, session_id: str, *, after: int = 0, limit: int = 1000, show: Shown = "visible"
    ) -> list[MessageRow]:
        """Rising by seq. `visible` leaves out archived and cut, `all` only cut; `cut` is the cut ones."""
        ...

    def last_messages(self, session_id: str, limit: int, *, show: Shown = "visible") -> list[MessageRow]:
        """The newest `limit`, rising by seq."""
        ...

    def last_message(self, session_id: str, role: str, *, before: int | None = None) -> MessageRow | None:
        """The newest visible one of a role; with `before`, of those with a smaller seq."""
        ...

    def pending_prompt(self, session_id: str) -> int | None:
        """The seq of the newest visible message that a turn began with, if it is marked pending."""
        ...

    def messages_from(self, session_id: str, seq: int, *, show: Shown = "visible") -> list[MessageRow]: ...
    def last_prompts(self, session_id: str, count: int) -> tuple[MessageRow, MessageRow] | None:
        """The earliest and the latest of the user's last `count` visible messages."""
        ...

    def numbers_from(self, session_id: str, seq: int) -> tuple[list[int], list[int]]:
        """The seqs of the visible messages from one on, rising, and the turns that said them, rising."""
        ...

    def last_of_fork(self, session_id: str, through_turn: int) -> int:
        """The seq up to which a fork has the history: before the turn that was run after this one."""
        ...

    def fits_at_once(self, session_id: str, seqs: Sequence[int]) -> bool:
        """Whether these were cut so few and short that `Tx.show_messages` can restore them by itself."""
        ...

    def has_finished_changes(self, session_id: str) -> bool:
        """Whether every row says of itself that it is cut or archived; see `Tx.finish_change`."""
        ...

    def last_spoken_turn(self, session_id: str, *, before: int | None = None) -> int:
        """The turn of the newest visible message that belongs to one, below a seq; 0 without."""
        ...

    def permission(self, session_id: str, permission_id: str) -> PermissionRow | None: ...
    def permissions(self, session_id: str, *, state: str | None = None) -> list[PermissionRow]: ...
    def is_granted(self, session_id: str, tool: str, kind: str | None) -> bool:
        """Somebody decided `allow_always` for this tool and kind."""
        ...

    def file(self, file_token: str) -> FileRow | None: ...
    def file_beginning(self, mark: str) -> FileRow | None:
        """A file by the beginning of its token, which is long enough to be the only one."""
        ...

    def stored_bytes(self) -> dict[DiskForm, int]:
        """What the app has on the disk, by form, as counted so far in this transaction."""
        ...

    def persona(self, name: str) -> PersonaRow | None: ...
    def personas(self) -> list[PersonaRow]: ...
    def secrets(self) -> dict[str, str]:
        """The app's own, by name."""
        ...

    def search(
        self, q: str, *, limit: int, cursor: str | None = None, session_id: str | None = None
    ) -> tuple[list[Hit], str | None]:
        """Full text over visible messages, newest first."""
        ...


class Tx(View, BlobTx, BudgetTx, ChangeTx, LeaseTx, LinkTx, ScheduleTx, UsageTx, WebhookTx, Protocol):
    """A transaction for one app. What it raises undoes the whole of it, and only it."""

    def add_session(self, row: SessionRow) -> None: ...
    def change_session(self, session_id: str, **changes: Any) -> None:
        """Set columns by their field names; unknown names are a programming error."""
        ...

    def append(
        self,
        session_id: str,
        drafts: Sequence[Draft],
        *,
        fence: int | None = None,
        written: int | None = None,
    ) -> int:
        """Number and write events, move `head` and `updated_at`; the new head.

        With `fence`, LeaseLost when the session has another one now. `written`, how many the holder has
        written with these, is noted with the session, and 0 again when somebody claims it.
        """
        ...

    def head(self, session_id: str) -> int:
        """The number of the last event; SessionNotFound."""
        ...

    def claim(self, session_id: str, node: str) -> int:
        """Become the holder: the new fence."""
        ...

    def add_turn(self, row: TurnRow) -> None: ...
    def change_turn(self, session_id: str, turn_index: int, **changes: Any) -> None: ...
    def add_message(self, row: MessageRow) -> int:
        """Its seq; keeps the session's `last_message` and `message_count`, and the search index."""
        ...

    def change_messages(self, session_id: str, seqs: Sequence[int], **changes: Any) -> None:
        """For content, cut, archived, pending and the like; keeps `message_count` and the index right."""
        ...

    def add_permission(self, row: PermissionRow) -> None: ...
    def change_permission(self, session_id: str, permission_id: str, **changes: Any) -> None: ...
    def add_file(self, row: FileRow) -> None: ...
    def remove_file(self, file_token: str) -> None: ...
    def put_persona(self, row: PersonaRow) -> None: ...
    def remove_persona(self, name: str) -> bool: ...
    def add_run(self, row: RunRow) -> None: ...
    def audit(self, session_id: str | None, event: str, at: Micros, details: Json) -> None: ...
    def hide_messages(self, session_id: str, seqs: Sequence[int], turns: Sequence[int]) -> None:
        """Cut these: all that are visible from the first of them on, with their turns.

        However many they are, it takes a moment; nobody sees half of it. SessionBusy while an earlier one
        is not finished.
        """
        ...

    def archive_messages(self, session_id: str) -> int:
        """Archive all that are visible; how many. Takes a moment, like `hide_messages`."""
        ...

    def finish_change(self, session_id: str) -> bool:
        """Mark some rows of what was hidden or archived at once; True when none are left."""
        ...

    def restore_slice(self, session_id: str, seqs: Sequence[int], turns: Sequence[int], done: int) -> int:
        """Before `show_messages`, for more than fit at once: prepare some rows, unseen by readers.

        `done` is how many messages and turns were prepared, and the result how many are now. What is
        given up halfway is hidden still, and `finish_change` makes its rows say so again.
        """
        ...

    def show_messages(self, session_id: str, seqs: Sequence[int], turns: Sequence[int]) -> None:
        """Undo `hide_messages`; these are all of what it hid, and nothing was said since."""
        ...

    def copy_history(self, source: str, target: str, *, after: int, through: int, at: Micros) -> int:
        """For a fork: some of the visible messages after one seq and up to another, and their ended turns.

        Returns the seq it came to; it is done when that is `through`. The copies keep their seq and
        turn_index, and count as turns of the target's first context. The source's events are not copied; the
        target's own tell what it got (`bring`). The target may be a deleted session, which nobody sees.
        """
        ...

    def bring(self, session_id: str, *, after: int, last: int, turns: Sequence[int]) -> None:
        """Put messages and turns that are there into the log, as what the session began with.

        Their events are numbered 0, -1, -2 … and are in no page: readers begin after 0. The messages are
        those after one seq and up to another.
        """
        ...

    def reveal_session(self, session_id: str) -> None:
        """A session that was added as deleted, so that nobody saw it before it was whole, is there now."""
        ...

    def refresh_index(self) -> bool:
        """Bring the full-text index up to date for some messages; True when it is for all of the app's."""
        ...

    def set_file_bytes(self, session_id: str, sizes: Mapping[DiskForm, int]) -> None:
        """What the folders of a session were found to hold; forms that are left out stay as they are.

        Nothing happens when the session is gone.
        """
        ...

    def purge(self, session_id: str, limit: int) -> bool:
        """Remove up to `limit` rows of a deleted session; True when nothing of it is left but the audit."""
        ...


class Store(Protocol):
    """The durable backend. A write returns when it is on stable storage, or raises."""

    @property
    def commit_times(self) -> Histogram:
        """Seconds that commits took since the store was opened."""
        ...

    @property
    def job_times(self) -> Histogram:
        """Seconds for which single jobs kept the writer."""
        ...

    @property
    def checkpoint_times(self) -> Histogram:
        """Seconds that it took to move what was written to its final place."""
        ...

    @property
    def peers(self) -> Peers | None:
        """The way to other nodes that use the same store; None where there can be none."""
        ...

    async def read(self, app: str, work: Callable[[View], T]) -> T:
        """Read from one state. The work may be run several times until it has all that it asks for."""
        ...

    async def read_long(self, app: str, work: Callable[[View], T]) -> T:
        """Read very many rows from one state. Others are served meanwhile."""
        ...

    def charge_to(self, charge: Callable[[str, float], None]) -> None:
        """Call this in the event loop with an app and the seconds that this process computed for its long
        reads, where they do."""
        ...

    async def write(self, app: str, work: Callable[[Tx], T]) -> T: ...
    async def write_slice(self, app: str, work: Callable[[Tx], T]) -> T:
        """Write one of many short parts of a long change. While others wait to write, such parts together get
        at most half of the time; within one app they keep the order with its other writes."""
        ...

    async def read_system(self, work: Callable[[SystemView], T]) -> T: ...
    async def write_system(self, work: Callable[[SystemTx], T]) -> T: ...
    async def pack(self, app: str, session_id: str, through: int) -> bool:
        """Put some events of a session up to a number closer together; False when there are none to do.

        Nobody can tell by reading. Nothing of it keeps the writer for longer than a small write.
        """
        ...

    def listen(self, listener: Callable[[Commit], None]) -> None:
        """Called in the event loop for every commit that added events, in order, before the writer's
        own call returns."""
        ...

    def listen_for_changes(self, listener: Callable[[str], None]) -> None:
        """Called in the event loop with the app of every commit that added to its `changes`, before the
        writer's own call returns; with an empty name when the store was away."""
        ...

    def health(self) -> str | None:
        """Why the store cannot be written now, or None."""
        ...

    def version(self) -> str: ...
    async def close(self) -> None: ...
