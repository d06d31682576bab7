"""What core asks of a store for everybody: credentials, limits, and where work waits.

As in `store.py`, but bound to no app. These find; the change is then made under the app's own name.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from clawdforge.core.models.rows import AppRow, AuditBase, AuditRow, FileRow, LinkRow, PauseRow, TokenRow
from clawdforge.core.models.workspaces import Area
from clawdforge.core.ports.blobs import BlobSystemTx
from clawdforge.core.ports.nodes import NodeTx, NodeView
from clawdforge.core.ports.schedules import DueSchedule
from clawdforge.core.ports.usage import UsageView
from clawdforge.core.ports.webhooks import WaitingDeliveries
from clawdforge.wire.base import Json, Micros
from clawdforge.wire.disk import DiskForm


class SystemView(NodeView, UsageView, Protocol):
    """What spans apps: credentials, what was used, and where work waits."""

    def apps(self) -> list[AppRow]: ...
    def app_row(self, app_name: str) -> AppRow | None: ...
    def secret_names(self) -> list[tuple[str, str]]:
        """(app, name) of every secret."""
        ...

    def pauses(self) -> list[PauseRow]:
        """All of them, the widest first."""
        ...

    def budget_apps(self, after: str, limit: int) -> list[str]:
        """Apps that have budgets, by name, after this one."""
        ...

    def app_of_budget(self, budget_id: str) -> str | None: ...
    def lost_runs(self) -> list[tuple[str, str]]:
        """(app, run_id) of the one-shot runs that hold something of a budget, and go on at no living node."""
        ...

    def token_by_hash(self, digest: bytes) -> TokenRow | None: ...
    def tokens(self, app_name: str | None = None) -> list[TokenRow]: ...
    def link_by_hash(self, digest: bytes) -> LinkRow | None: ...
    def login_round(self, holder: str) -> int:
        """How often all logins of a token, or of the operator, were ended."""
        ...

    def count_open_sessions(self) -> int: ...
    def session_counts(self) -> dict[str, int]: ...
    def open_session_counts(self) -> dict[str, tuple[int, int]]:
        """By app: open sessions, and those of them with retention `ttl`."""
        ...

    def turns_of_apps(self) -> dict[str, int]:
        """By app: turns that have not ended."""
        ...

    def active_sessions(self) -> list[tuple[str, str]]:
        """(app, session_id) of every session with a turn that is running or waiting."""
        ...

    def waiting_sessions(self) -> list[tuple[str, str]]:
        """(app, session_id) of every open session with a queued turn and none active, oldest first."""
        ...

    def idle_sessions(self, before: Micros, limit: int) -> list[tuple[str, str]]:
        """Open `ttl` sessions with no queued or active turn, idle since before then."""
        ...

    def closed_sessions(self, before: Micros, limit: int) -> list[tuple[str, str]]:
        """`ttl` sessions closed before then."""
        ...

    def deleted_sessions(self, now: Micros, limit: int) -> list[tuple[str, str]]:
        """Those whose deletion is due: one that is still being made is deleted in the future."""
        ...

    def unfinished_sessions(self, limit: int) -> list[tuple[str, str]]:
        """(app, session_id) of sessions for which `Tx.finish_change` has work to do."""
        ...

    def unpacked_sessions(self, after: str, limit: int) -> tuple[list[tuple[str, str]], str | None]:
        """Of the next `limit` sessions by id those whose last events are not packed, and the last id of all.

        That is None when there are no more.
        """
        ...

    def apps_with_old_changes(self, before: Micros) -> list[str]:
        """Those in which `Tx.forget_changes` has something to forget."""
        ...

    def apps_with_old_usage(self, before: str) -> list[str]:
        """Those in which `Tx.forget_usage` has something to forget."""
        ...

    def waiting_deliveries(self) -> list[WaitingDeliveries]:
        """The endpoints that have some, the one first whose first is to be tried first."""
        ...

    def endpoints_off(self, why: str) -> list[tuple[str, str]]:
        """(app, endpoint_id) of the webhooks that are off for this reason."""
        ...

    def due_schedules(self, now: Micros, limit: int) -> list[DueSchedule]:
        """Those whose time has come, the first ones first; none of an app that is paused as a whole."""
        ...

    def first_schedule(self) -> Micros | None:
        """When the first of all is due, without those of paused apps."""
        ...

    def waiting_schedules(self, after: tuple[str, str], limit: int) -> list[DueSchedule]:
        """All that have a time before them, by app and id, after these."""
        ...

    def unindexed_apps(self) -> list[str]:
        """The apps for which `Tx.refresh_index` has work to do."""
        ...

    def unmeasured_sessions(self, after: str, limit: int) -> list[tuple[str, str]]:
        """(app, session_id) of those that have run a turn, but of whose home no size is known, by id."""
        ...

    def unknown_sessions(self, session_ids: Sequence[str]) -> list[str]:
        """Those of which there is no row, not even a deleted one."""
        ...

    def last_workspace(self, session_id: str) -> str | None:
        """The folder that we made for a session, deleted or not, when no other session works in it."""
        ...

    def works_in(self, cwd: str, but: str) -> bool:
        """Whether a session other than that one works in a folder of our own."""
        ...

    def unpublished_sessions(self, folder: str, after: str, limit: int) -> list[tuple[str, str]]:
        """(app, session_id) of sessions whose home is in that data folder, and newer than what is published;
        those whose ids come after one, in their order."""
        ...

    def sessions_in(self, area: Area) -> list[tuple[str, str]]:
        """(app, session_id) of every open session that works in this folder, above it or below it."""
        ...

    def named_folders(self, made: str) -> list[str]:
        """The folders in which open sessions work, without those that lie in the folder `made`."""
        ...

    def place(self) -> str | None:
        """The identity of the data folder when the identities of workspaces were recorded."""
        ...

    def disk_of_apps(self) -> dict[str, dict[DiskForm, int]]:
        """What every app has on the disk, by form."""
        ...

    def disk_of_sessions(
        self, app_name: str, *, limit: int, cursor: str | None = None
    ) -> tuple[list[tuple[str, dict[DiskForm, int]]], str | None]:
        """A page of an app's sessions with what they have, the largest first, and the next one's cursor."""
        ...

    def turn_counts(self) -> dict[str, int]:
        """Turns that have not ended, by state."""
        ...

    def old_files(self, before: Micros, limit: int) -> list[FileRow]:
        """Uploads made before then that no open session's turn names."""
        ...

    def audit(self, *, app_name: str | None = None, after: int = 0, limit: int = 100) -> list[AuditRow]: ...
    def audit_base(self) -> AuditBase:
        """The last entry of the audit that was archived; before the first, if none was."""
        ...

    def usage(self) -> list[Json]:
        """Per app: sessions, turns and token totals, keyed as wire.admin.AppUsage."""
        ...


class SystemTx(SystemView, NodeTx, BlobSystemTx, Protocol):
    def put_app(self, row: AppRow) -> None:
        """Add the app, or change its limits and its folders."""
        ...

    def put_secret(self, app_name: str, name: str, value: str) -> None:
        """Keep it, in place of what had that name; an empty value removes it."""
        ...

    def put_pause(self, row: PauseRow) -> None:
        """Add it, or change its reason."""
        ...

    def remove_pause(self, app_name: str, agent: str) -> bool:
        """Whether there was one."""
        ...

    def move_to(self, place: str) -> None:
        """Record where the data folder is now, and forget the identities of all workspaces."""
        ...

    def add_token(self, row: TokenRow) -> None: ...
    def change_token(self, token_id: str, **changes: Any) -> bool: ...
    def end_logins(self, holder: str) -> None:
        """Begin the holder's next round of logins."""
        ...

    def remove_runs(self, before: Micros, limit: int) -> int:
        """Remove the records of one-shot runs that were made before then, oldest first; how many were."""
        ...

    def remove_deliveries(self, before: Micros, limit: int) -> int:
        """Remove deliveries that were made or given up before then, oldest first; how many were."""
        ...

    def give_back_space(self) -> bool:
        """Return some of the space that deleted rows left to the file system; True when that is enough."""
        ...

    def audit_system(self, app_name: str, event: str, at: Micros, details: Json) -> None: ...
