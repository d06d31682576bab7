"""What changed in an app's list of sessions, as a reader of `GET /events` is told."""

from typing import Literal, TypeAlias

from clawdforge.wire.base import Reply
from clawdforge.wire.session import Session
from clawdforge.wire.turn import AppPermission

ChangeWord: TypeAlias = Literal["session", "session.deleted", "permission", "cursor", "reset"]


class Change(Reply):
    """One change: `session` as it is now, `session_id` of one that is gone, or a `permission`.

    `cursor` is where to go on. `reset` means that changes are missing: read the list again.
    """

    cursor: int
    type: ChangeWord
    session: Session | None = None
    session_id: str | None = None
    permission: AppPermission | None = None


class ChangePage(Reply):
    """`GET /events` as JSON; `next` is the cursor for the page after this one."""

    ok: bool = True
    events: list[Change]
    next: int
