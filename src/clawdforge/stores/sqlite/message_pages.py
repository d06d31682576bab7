"""Pages of a session's messages, in both directions, and of its turns, each read from where it begins."""

from clawdforge.core.models.rows import ForkNode, MessageRow, TurnNode, TurnRow
from clawdforge.core.ports import Shown
from clawdforge.stores.sqlite.event_pages import END
from clawdforge.stores.sqlite.own_rows import OwnRows


class MessagePages(OwnRows):
    def turn_nodes(self, session_id: str, *, after: int, limit: int, chars: int) -> list[TurnNode]:
        rows = self._rows("turn_nodes", session=session_id, after=after, limit=limit, chars=chars)
        return [TurnNode(row[0], row[1], bool(row[2]), *row[3:]) for row in rows]

    def turn_before(self, session_id: str, seq: int) -> tuple[int, int, int] | None:
        rows = self._rows("turn_before", session=session_id, seq=seq)
        return next(((int(index), int(last), int(context)) for index, last, context in rows), None)

    def failed_turns(self, session_id: str, *, after: int) -> list[tuple[int, TurnRow]]:
        rows = self._rows("failed_turns", session=session_id, after=after)
        return [(row[0], self._q.turn.read(row[1:])) for row in rows]

    def models(self, last: int) -> list[str]:
        return [str(row[0]) for row in self._rows("models", last=last)]

    def seq_at(self, session_id: str, skip: int) -> int | None:
        return self._number("seq_at", session=session_id, skip=skip) or None

    def forks_after(self, session_id: str, *, after: int, last: int, limit: int) -> list[ForkNode]:
        rows = self._rows("forks_after", session=session_id, after=after, last=last, limit=limit)
        return [ForkNode(*row) for row in rows]

    def message_page(
        self, session_id: str, *, after: int, limit: int, max_bytes: int, show: Shown
    ) -> tuple[list[MessageRow], bool]:
        name = f"messages_{show}"
        return self._page(self._q.message, name, limit, max_bytes, session=session_id, after=after)

    def message_page_before(
        self, session_id: str, *, before: int | None, limit: int, max_bytes: int, show: Shown
    ) -> tuple[list[MessageRow], bool]:
        below = END if before is None else before
        name = f"messages_before_{show}"
        found, is_more = self._page(self._q.message, name, limit, max_bytes, session=session_id, before=below)
        return found[::-1], is_more

    def has_message_before(self, session_id: str, seq: int, *, show: Shown) -> bool:
        return self._number(f"has_before_{show}", session=session_id, before=seq) == 1

    def has_message_after(self, session_id: str, seq: int, *, show: Shown) -> bool:
        return self._number(f"has_after_{show}", session=session_id, after=seq) == 1
