"""What core asks of a store about changes: which sessions and permissions look otherwise since a cursor."""

from typing import NamedTuple, Protocol

from clawdforge.wire.base import Micros


class ChangeRow(NamedTuple):
    """The latest change of a session, or of one of its requests for a permission."""

    number: int
    session_id: str
    permission_id: str | None


class ChangeBounds(NamedTuple):
    """The last number that was given out, and the last that a cursor must not be below."""

    forgotten: int
    last: int


class ChangeView(Protocol):
    def change_bounds(self) -> ChangeBounds: ...
    def changes(self, *, after: int, limit: int) -> list[ChangeRow]:
        """Rising by number. A session that has been deleted has one too."""
        ...


class ChangeTx(ChangeView, Protocol):
    """A store notes changes by itself: with the server's own events, and when a session appears or goes."""

    def forget_changes(self, before: Micros, limit: int) -> bool:
        """Forget some that are older; True when no more are."""
        ...
