"""What changed in an app's list: sessions and permissions under one cursor, as pages or as they happen.

A reader pulls by its cursor, and a commit only wakes it. It gets each session once, as it is now, however
often it has changed: so whoever reads slowly reads less, and nothing is kept for anybody.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from clawdforge.core.models.rows import PermissionRow, SessionRow
from clawdforge.core.pacing.loop_turns import LoopTurns
from clawdforge.core.ports import Store, View
from clawdforge.core.ports.changes import ChangeRow
from clawdforge.core.rules.sessions import SessionState, state_of

PAGE: Final = 100
REST_SECS: Final = 0.1
"""So long a reader leaves a list alone after it was told something; what happens meanwhile comes at once."""


class ChangeKind(StrEnum):
    SESSION = "session"
    SESSION_DELETED = "session.deleted"
    PERMISSION = "permission"
    CURSOR = "cursor"  # where a reader stands who did not say from where
    RESET = "reset"  # what came after the reader's cursor is not known any more: read the list again


@dataclass(frozen=True, slots=True)
class Change:
    cursor: int
    kind: ChangeKind
    session_id: str | None = None
    state: SessionState | None = None
    permission: tuple[PermissionRow, SessionRow] | None = None


class _Watch:
    """The readers of one app's changes, and their signal."""

    def __init__(self) -> None:
        self.readers = 0
        self.added = asyncio.Event()

    def wake(self) -> None:
        self.added.set()
        self.added = asyncio.Event()


class ChangeService:
    def __init__(self, store: Store, turns: LoopTurns) -> None:
        self._store = store
        self._turns = turns
        self._watches: dict[str, _Watch] = {}
        store.listen_for_changes(self._on_change)

    @property
    def readers(self) -> int:
        return sum(watch.readers for watch in self._watches.values())

    async def read(self, app: str, after: int | None, limit: int = PAGE) -> AsyncIterator[Change]:
        """What has changed up to now; first of all, that the reader stands elsewhere, if it does."""
        moved, rows = await self._look(app, after, limit)
        if moved is not None:
            yield moved
        for row in rows:
            yield await self._load(app, row)

    async def follow(self, app: str, after: int | None) -> AsyncGenerator[Change]:
        """The same, and then every change as it happens, for ever."""
        with self._watch(app) as watch:
            while True:
                added = watch.added
                moved, rows = await self._look(app, after, PAGE)
                if moved is not None:
                    after = moved.cursor
                    yield moved
                for row in rows:
                    yield await self._load(app, row)
                if rows:
                    after = rows[-1].number
                    await asyncio.sleep(REST_SECS)
                elif moved is None:
                    await added.wait()

    async def _look(self, app: str, after: int | None, limit: int) -> tuple[Change | None, list[ChangeRow]]:
        def work(view: View) -> tuple[Change | None, list[ChangeRow]]:
            bounds = view.change_bounds()
            if after is None:
                return Change(bounds.last, ChangeKind.CURSOR), []
            if not bounds.forgotten <= after <= bounds.last:
                return Change(bounds.last, ChangeKind.RESET), []
            return None, view.changes(after=after, limit=limit)

        return await self._store.read(app, work)

    async def _load(self, app: str, row: ChangeRow) -> Change:
        """Each is read when it is its turn, so that one at a time is in memory."""
        await self._turns.slice(app)
        return await self._store.read(app, lambda view: _find(view, row))

    @contextmanager
    def _watch(self, app: str) -> Iterator[_Watch]:
        watch = self._watches.setdefault(app, _Watch())
        watch.readers += 1
        try:
            yield watch
        finally:
            watch.readers -= 1
            if not watch.readers:
                del self._watches[app]

    def _on_change(self, app: str) -> None:
        found = [self._watches.get(app)] if app else list(self._watches.values())
        for watch in found:
            if watch is not None:
                watch.wake()


def _find(view: View, row: ChangeRow) -> Change:
    session = view.session(row.session_id)
    if session is None:  # and its permissions with it
        return Change(row.number, ChangeKind.SESSION_DELETED, row.session_id)
    asked = None if row.permission_id is None else view.permission(row.session_id, row.permission_id)
    if asked is not None:
        return Change(row.number, ChangeKind.PERMISSION, permission=(asked, session))
    return Change(row.number, ChangeKind.SESSION, state=state_of(view, session))
