"""Pages of an app's sessions, last activity first, each condition by an index where there is one."""

from collections.abc import Iterator, Mapping
from typing import Final

from clawdforge.core.models.rows import SessionQuery, SessionRow
from clawdforge.stores.sqlite.own_rows import OwnRows, Room
from clawdforge.stores.sqlite.rows import Value
from clawdforge.stores.sqlite.search import from_cursor, to_cursor
from clawdforge.stores.sqlite.session_lists import ENDED, OF_APP, OPEN, PARENT, PROJECT

SESSION_BYTES: Final = 2048
"""To list a session costs as much as so many bytes of it: its state is looked up as well."""


class SessionPages(OwnRows):
    def sessions(self, query: SessionQuery) -> tuple[list[SessionRow], str | None]:
        words = self._q.conditions
        where, params = zip(*_conditions(query, words), strict=True)
        values: dict[str, Value] = {"app": self.app, "limit": query.limit + 1}
        for some in params:
            values |= some
        if query.cursor is not None:
            values["updated_at"], values["session_id"] = from_cursor(query.cursor, int, str)
        sql = self._q.list_sessions(where, query.activity, is_later=query.cursor is not None)
        room = Room(query.limit, query.max_bytes, SESSION_BYTES)
        page = [self._q.session.read(row) for row in self._db.rows(sql, values, room.fits)]
        is_more = room.is_over and page
        return page, to_cursor(page[-1].updated_at, page[-1].session_id) if is_more else None


def _conditions(query: SessionQuery, words: Mapping[str, str]) -> Iterator[tuple[str, dict[str, Value]]]:
    yield "deleted_at IS NULL", {}
    yield OF_APP if query.prefix is None else words["app_by_prefix"], {}
    if not query.include_closed or query.state == "active":
        yield OPEN, {}
    if query.state == "ended":
        yield ENDED, {}
    if query.agent is not None:
        yield "agent = :agent", {"agent": query.agent}
    if query.project is not None:
        yield PROJECT, {"project": query.project}
    if query.parent is not None:
        yield PARENT, {"parent": query.parent}
    if query.pinned:
        yield "pinned = 1", {}
    if query.prefix is not None:
        yield words["prefix"], {"prefix": query.prefix}
    yield from _words(query, words)


def _words(query: SessionQuery, words: Mapping[str, str]) -> Iterator[tuple[str, dict[str, Value]]]:
    if query.label is not None:
        yield words["label"], {"label": query.label}
    if query.q is not None:
        yield words["title"], {"q": f"%{_escape_like(query.q)}%"}


def _escape_like(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
