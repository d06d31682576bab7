"""What moves with every event of a session: a row of its own, which is narrow and in no list.

`sessions.updated_at`, by which lists are sorted, stands still while a session is at work, and is the time of
its last event whenever it is not. So a list sorts the few that are at work by themselves, and all others by
an index.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from clawdforge.core.models.rows import SessionRow
from clawdforge.stores.sqlite.queries import MINE
from clawdforge.stores.sqlite.rows import Codec
from clawdforge.stores.sqlite.session_lists import AT_WORK, WORKING
from clawdforge.wire.session import Activity

HEADS: Final = frozenset({"head", "holder", "fence", "written"})
"""Columns of a session that stand there."""
SESSIONS: Final = "sessions JOIN session_heads USING (session_id)"
UPDATED_AT: Final = "greatest(sessions.updated_at, session_heads.moved_at)"
AT_REST: Final = "activity IN ('idle', 'interrupted', 'failed')"
NOT_AT_WORK: Final = "activity NOT IN ('queued', 'running', 'waiting')"
"""No index says it so: one that is sorted by activity first would have to be sorted again."""
RESTED: Final = (
    f"WITH rested AS (UPDATE sessions SET updated_at = :at WHERE session_id = {MINE}"  # noqa: S608 - our own names
    f" AND updated_at < :at AND {NOT_AT_WORK}) "
)
MOVED: Final = ", moved_at = greatest(moved_at, :at)"
CAUGHT_UP: Final = (
    ", updated_at = greatest(updated_at, (SELECT moved_at FROM session_heads WHERE session_id = :session))"
)


class SessionCodec(Codec[SessionRow]):
    """Of rows that stand in two tables."""

    def __init__(self) -> None:
        super().__init__(SessionRow, "sessions", ["app_name", "session_id", *HEADS], never_null=["meta"])
        heads = [name for name in self.names if name in HEADS]
        rest = [name for name in self.names if name not in HEADS]
        self.insert = (
            f"WITH heads AS (INSERT INTO session_heads (session_id, {', '.join(heads)}, moved_at)"  # noqa: S608
            f" VALUES (:session_id, {_marks(heads)}, :updated_at))"
            f" INSERT INTO sessions ({', '.join(rest)}) VALUES ({_marks(rest)})"
        )

    @property
    def columns(self) -> str:
        return ", ".join(map(_place, self.names))


def set_session(columns: Sequence[str], *, is_moved: bool) -> tuple[str, ...]:
    """As `Queries.set_session` says."""
    heads = [name for name in columns if name in HEADS]
    rest = [name for name in columns if name not in HEADS]
    found = []
    if heads:
        moved = MOVED if is_moved else ""
        change = f"UPDATE session_heads SET {_assign(heads)}{moved} WHERE session_id = {MINE}"  # noqa: S608
        found.append(RESTED + change if is_moved and not rest else change)
    if rest:
        where = "session_id = :session AND app_name = :app AND deleted_at IS NULL"
        found.append(f"UPDATE sessions SET {_assign(rest)}{CAUGHT_UP} WHERE {where}")  # noqa: S608
    return tuple(found)


def list_sessions(columns: str, where: Sequence[str], activity: Activity | None, *, is_later: bool) -> str:
    """As `Queries.list_sessions` says."""
    arms = []
    doing = [] if activity is None else [f"activity = '{activity.value}'"]
    if activity not in WORKING:
        rested = [*where, *doing, NOT_AT_WORK if activity is None else AT_REST]
        arms.append(_sort("sessions", "updated_at", rested, is_later=is_later))
    if activity is None or activity in WORKING:
        few = [*where, *doing, AT_WORK]
        arms.append(_sort(SESSIONS, UPDATED_AT, few, is_later=is_later))
    return (
        f"SELECT {columns} FROM ({' UNION ALL '.join(arms)}) AS found"  # noqa: S608 - our own names
        " JOIN sessions USING (session_id) JOIN session_heads USING (session_id)"
        f" ORDER BY {UPDATED_AT} DESC, session_id DESC LIMIT :limit"
    )


def _sort(tables: str, updated_at: str, where: Iterable[str], *, is_later: bool) -> str:
    later = [f"({updated_at}, session_id) < (:updated_at, :session_id)"] if is_later else []
    conditions = " AND ".join((*where, *later))
    order = f"ORDER BY {updated_at} DESC, session_id DESC"
    return f"(SELECT session_id FROM {tables} WHERE {conditions} {order} LIMIT :limit)"  # noqa: S608


def _place(name: str) -> str:
    if name == "updated_at":
        return UPDATED_AT
    return f"session_heads.{name}" if name in HEADS else f"sessions.{name}"


def _assign(names: Iterable[str]) -> str:
    return ", ".join(f"{name} = :{name}" for name in names)


def _marks(names: Iterable[str]) -> str:
    return ", ".join(f":{name}" for name in names)
