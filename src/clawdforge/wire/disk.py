"""What apps and sessions have on the server's disk, by form: `GET /admin/disk`."""

from enum import StrEnum
from typing import Final

from pydantic import Field

from clawdforge.wire.base import Reply


class DiskForm(StrEnum):
    """The forms in which things are stored. An app has uploads and runs beside what its sessions have."""

    EVENTS = "events"
    MESSAGES = "messages"
    UPLOADS = "uploads"
    RUNS = "runs"
    HOMES = "homes"
    HOME_COPIES = "home_copies"
    SNAPSHOTS = "snapshots"
    WORKSPACES = "workspaces"


FILE_FORMS: Final = (DiskForm.HOMES, DiskForm.HOME_COPIES, DiskForm.SNAPSHOTS, DiskForm.WORKSPACES)
"""What lies in folders of a session, and is measured; all else is in the database or counted with it."""

SESSION_FORMS: Final = (DiskForm.EVENTS, DiskForm.MESSAGES, *FILE_FORMS)


class AppDisk(Reply):
    """`max_bytes` is what the app may store, null without a limit."""

    app_name: str
    bytes: int
    max_bytes: int | None = None
    forms: dict[str, int] = Field(default_factory=dict)


class SessionDisk(Reply):
    session_id: str
    bytes: int
    forms: dict[str, int] = Field(default_factory=dict)


class DiskReply(Reply):
    """The apps, the largest first; with `app_name`, that one and a page of its sessions, likewise."""

    ok: bool = True
    bytes: int
    apps: list[AppDisk]
    sessions: list[SessionDisk] | None = None
    next: str | None = None
