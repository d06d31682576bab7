"""What core asks of a store about share links: tokens that read one session, up to a turn."""

from typing import Protocol

from clawdforge.core.models.rows import LinkRow


class LinkView(Protocol):
    def links(self, session_id: str) -> list[LinkRow]:
        """Those of a session, oldest first, expired ones too."""
        ...


class LinkTx(LinkView, Protocol):
    def add_link(self, row: LinkRow) -> None: ...
    def remove_link(self, session_id: str, share_id: str) -> bool:
        """Whether there was one."""
        ...
