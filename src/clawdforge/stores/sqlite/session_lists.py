"""The statement that lists sessions, those first that were updated last.

An index is sorted by when a session was last at rest (migration `fewer_pages`), which is when it was last
updated unless it is at work. So a list is put together: a part for each way of being at rest, ready sorted,
and the few sessions that are at work.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final

from clawdforge.wire.session import Activity

WORKING: Final = frozenset({Activity.QUEUED, Activity.RUNNING, Activity.WAITING})
AT_WORK: Final = "activity IN ('queued', 'running', 'waiting')"
"""As the index says it: only a query that says the same can use one."""

NOT_AT_WORK: Final = "activity NOT IN ('queued', 'running', 'waiting')"
RESTS: Final = (Activity.IDLE, Activity.INTERRUPTED, Activity.FAILED)
OPEN, ENDED = "closed_at IS NULL", "closed_at IS NOT NULL"
OF_APP: Final = "app_name = :app"
PROJECT: Final = "project_key = :project AND project_key IS NOT NULL"
PARENT: Final = "parent_session_id = :parent AND parent_session_id IS NOT NULL"
INDEXES: Final = {OPEN: "sessions_open", ENDED: "sessions_ended"}
IN_FEW: Final = {PROJECT: "sessions_of_project", PARENT: "sessions_of_parent"}
"""Conditions that have an index of their own."""


def list_sessions(columns: str, where: Sequence[str], activity: Activity | None, *, is_later: bool) -> str:
    """Sessions for which all of `where` holds, which are doing what is named, if anything is.

    With `is_later`, a page that follows another.
    """
    parts = list(_parts(columns, where, activity, is_later=is_later))
    return f"{' UNION ALL '.join(parts)} ORDER BY updated_at DESC, session_id DESC LIMIT :limit"


def _parts(columns: str, where: Sequence[str], activity: Activity | None, *, is_later: bool) -> Iterator[str]:
    doing = [] if activity is None else [f"activity = '{activity.value}'"]
    if activity not in WORKING:
        resting = columns.replace("sessions.updated_at", "sessions.listed_at AS updated_at")
        conditions = [*where, NOT_AT_WORK, *doing, *_after("listed_at", is_later=is_later)]
        for index, more in _indexes(where, activity):
            yield _select(resting, index, [*conditions, *more])
    if activity is None or activity in WORKING:
        index = " INDEXED BY sessions_at_work" if OF_APP in where else ""
        yield _select(columns, index, [*where, AT_WORK, *doing, *_after("updated_at", is_later=is_later)])


def _indexes(where: Sequence[str], activity: Activity | None) -> Iterator[tuple[str, list[str]]]:
    """How sessions at rest are found, and what has to be said for it."""
    few = [f" INDEXED BY {name}" for condition, name in IN_FEW.items() if condition in where]
    if few or OF_APP not in where:  # a prefix finds few by the primary key
        yield next(iter(few), ""), []
        return
    closed = [one for one in INDEXES if one in where] or list(INDEXES)
    for state, rest in product(closed, RESTS if activity is None else [activity]):
        yield f" INDEXED BY {INDEXES[state]}", [f"listed_as = '{rest.value}'", state]


def _after(updated_at: str, *, is_later: bool) -> list[str]:
    return [f"({updated_at}, session_id) < (:updated_at, :session_id)"] if is_later else []


def _select(columns: str, index: str, conditions: Sequence[str]) -> str:
    return f"SELECT {columns} FROM sessions{index} WHERE {' AND '.join(conditions)}"  # noqa: S608 - only fragments
