"""What an agent may do with a token of its own: look at its session, and make and prompt sub-sessions."""

import asyncio
from typing import Final

from clawdforge.core.callbacks import BY_AGENT
from clawdforge.core.models.principal import Principal
from clawdforge.core.models.rows import SessionQuery, SessionRow
from clawdforge.core.ports import Store, View
from clawdforge.core.rules.sessions import SessionState
from clawdforge.core.rules.turns import need_session
from clawdforge.core.services.sessions import SessionService
from clawdforge.wire.errors import Forbidden, LimitExceeded, SessionNotFound
from clawdforge.wire.session import CreateSession, Retention

MOST_OPEN: Final = 8
"""How many open sub-sessions one agent may have: they take places that others wait for."""


class SubSessionService:
    def __init__(self, store: Store, sessions: SessionService) -> None:
        self._store = store
        self._sessions = sessions
        self._counting = asyncio.Lock()

    async def check(self, caller: Principal, session_id: str, *, reads: bool) -> None:
        """Refuse a session that is neither the agent's own, to read, nor one that it made.

        Any other is answered like one that does not exist.
        """
        row = await self._store.read(caller.app, lambda view: need_session(view, session_id))
        if session_id == caller.session_id:
            if not reads:
                raise Forbidden("an agent may read its own session, but not act on it; make a sub-session")
        elif not _was_made_by(row, caller.session_id):
            raise SessionNotFound

    def may_see(self, caller: Principal, row: SessionRow) -> bool:
        """Whether a session below the agent's own is one that it made; others have made some there too."""
        return caller.session_id is None or _was_made_by(row, caller.session_id)

    async def create(self, caller: Principal, request: CreateSession) -> SessionState:
        """Make a sub-session of the agent's own, which can do no more than that one."""
        async with self._counting:  # many at once must not get past the limit; it takes two commits
            return await self._sessions.create(caller.app, await self._narrow(caller, request))

    async def _narrow(self, caller: Principal, request: CreateSession) -> CreateSession:
        own = caller.session_id or ""

        def look(view: View) -> tuple[SessionRow, int]:
            rows, _ = view.sessions(SessionQuery(parent=own, state="active", limit=MOST_OPEN + 1))
            return need_session(view, own), len(rows)

        parent, count = await self._store.read(caller.app, look)
        if count >= MOST_OPEN:
            raise LimitExceeded(f"this agent has {count} open sub-sessions; close one first")
        fixed: dict[str, object] = {
            "agent": parent.agent,
            "permission_mode": parent.permission_mode,
            "parent_session_id": own,
            "cwd": None,
            "persona": None,
            "mcp_servers": None,
        }
        for name, value in fixed.items():
            if getattr(request, name) not in (None, value):
                raise Forbidden(f"an agent cannot choose {name} of a sub-session; leave it out")
        labels = [*[label for label in request.labels if label != BY_AGENT], BY_AGENT]
        more = {"labels": labels, "retention": Retention.TTL, "model": request.model or parent.model}
        return request.model_copy(update={**fixed, **more})


def _was_made_by(row: SessionRow, session_id: str | None) -> bool:
    made = row.parent_session_id == session_id and BY_AGENT in row.labels
    return made and row.forked_from is None  # a fork is somebody else's, and copies the labels
