"""Share links of an app's sessions."""

from clawdforge.core.models.rows import LinkRow
from clawdforge.stores.sqlite.own_rows import OwnRows


class LinkRows(OwnRows):
    """What can be read."""

    def links(self, session_id: str) -> list[LinkRow]:
        return self._list(self._q.link, "links", session=session_id)


class LinkChanges(LinkRows):
    """What can be changed."""

    def remove_link(self, session_id: str, share_id: str) -> bool:
        return self._run("remove_link", session=session_id, share=share_id) > 0
