"""What core asks of a store in pages: parts of a list that a reader goes through in both directions."""

from typing import Literal, Protocol

from clawdforge.core.models.rows import ForkNode, MessageRow, PendingPermission, TurnNode, TurnRow

Shown = Literal["visible", "all", "cut"]


class PageView(Protocol):
    def count_pending(self, session_id: str) -> int:
        """How many permission requests wait for an answer."""
        ...

    def pending_permissions(
        self, *, limit: int, max_bytes: int, cursor: str | None = None
    ) -> tuple[list[PendingPermission], str | None]:
        """What agents ask for in all sessions of the app and nobody has decided, oldest first; and the cursor
        of the next page."""
        ...

    def turn_nodes(self, session_id: str, *, after: int, limit: int, chars: int) -> list[TurnNode]:
        """Turns after an index, rising, with so many characters of their prompts."""
        ...

    def turn_before(self, session_id: str, seq: int) -> tuple[int, int, int] | None:
        """The turn that ended last before that event, of those that began here: its index, the number of its
        last event, and its context."""
        ...

    def failed_turns(self, session_id: str, *, after: int) -> list[tuple[int, TurnRow]]:
        """The turns after an index that did not end well and of which something is visible, rising; each with
        the seq of the last message that is."""
        ...

    def models(self, last: int) -> list[str]:
        """The models that the app's last sessions have, so many by activity; each once, in order."""
        ...

    def seq_at(self, session_id: str, skip: int) -> int | None:
        """The seq of the visible message before which there are so many others."""
        ...

    def forks_after(self, session_id: str, *, after: int, last: int, limit: int) -> list[ForkNode]:
        """The sessions that were forked after a turn between these, the first of them not included."""
        ...

    def message_page(
        self, session_id: str, *, after: int, limit: int, max_bytes: int, show: Shown
    ) -> tuple[list[MessageRow], bool]:
        """At least one message if there is one, then as many as fit; and whether there are more."""
        ...

    def message_page_before(
        self, session_id: str, *, before: int | None, limit: int, max_bytes: int, show: Shown
    ) -> tuple[list[MessageRow], bool]:
        """The newest of those below a seq, or of all, rising, as many as fit; and whether there are earlier
        ones. `show` is not `cut` here."""
        ...

    def has_message_before(self, session_id: str, seq: int, *, show: Shown) -> bool:
        """Whether one with a smaller seq is shown."""
        ...

    def has_message_after(self, session_id: str, seq: int, *, show: Shown) -> bool:
        """Whether one with a larger seq is shown."""
        ...
