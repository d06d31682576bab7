"""Measures the folders of sessions after something changed in them, one after the other, beside all else.

Nobody waits for it: what a session has on the disk is known a moment after its turn. One that was measured
rests for a second, so that many short turns cost one look and one commit between them. What a crash keeps
from being measured is measured after the session's next turn, and `doctor --deep` finds it before.
"""

import asyncio
import logging
from pathlib import Path
from typing import Final

from clawdforge.core.ports import FolderSizes, Store, View
from clawdforge.wire.errors import SessionDamaged, StoreUnavailable

log = logging.getLogger(__name__)
PAGE: Final = 200
STORE_RETRY_SECS: Final = 1.0
REST_SECS: Final = 1.0


class Meter:
    """Sessions wait here in the order in which they came, each of them once."""

    def __init__(self, store: Store, sizes: FolderSizes) -> None:
        self._store = store
        self._sizes = sizes
        self._waiting: dict[str, str] = {}  # apps by session
        self._resting: set[str] = set()  # were measured a moment ago
        self._is_measuring = False
        self._added = asyncio.Event()

    @property
    def is_idle(self) -> bool:
        return not self._waiting and not self._is_measuring

    def look(self, app: str, session_id: str) -> None:
        """Something in the folders of this session may have changed."""
        self._waiting[session_id] = app
        if session_id not in self._resting:
            self._added.set()

    async def run(self) -> None:
        """Measure for ever: first what was never measured, such as the sessions of an older version."""
        await self._look_at_unmeasured()
        while True:
            self._added.clear()
            while (session_id := self._find_next()) is not None:
                self._is_measuring = True
                try:
                    await self._measure(self._waiting.pop(session_id), session_id)
                finally:
                    self._is_measuring = False
            await self._added.wait()

    def _find_next(self) -> str | None:
        """The first that waits and does not rest."""
        return next((session_id for session_id in self._waiting if session_id not in self._resting), None)

    def _rest(self, session_id: str) -> None:
        self._resting.add(session_id)
        asyncio.get_running_loop().call_later(REST_SECS, self._end_rest, session_id)

    def _end_rest(self, session_id: str) -> None:
        self._resting.discard(session_id)
        if session_id in self._waiting:
            self._added.set()

    async def _look_at_unmeasured(self) -> None:
        after = ""
        while page := await self._store.read_system(
            lambda view, after=after: view.unmeasured_sessions(after, PAGE)  # type: ignore[misc]
        ):
            for app, session_id in page:
                self.look(app, session_id)
            after = page[-1][1]
            await asyncio.sleep(0)

    async def _measure(self, app: str, session_id: str) -> None:
        try:
            found = await self._store.read(app, lambda view: find_workspace(view, session_id))
            sizes = await self._sizes.measure(session_id, found)
            await self._store.write(app, lambda tx: tx.set_file_bytes(session_id, sizes))
            self._rest(session_id)
        except (OSError, SessionDamaged) as error:
            log.warning("what a session stores was not measured: %s", error, extra={"session_id": session_id})
        except StoreUnavailable:
            self.look(app, session_id)
            await asyncio.sleep(STORE_RETRY_SECS)


def find_workspace(view: View, session_id: str) -> str | None:
    """The name of the folder that we made and this session is to be charged with; None for somebody else's.

    A fork works in the folder of the session that it comes from, and takes it over when that is gone.
    """
    session = view.session(session_id)
    if session is None or not session.own_cwd:
        return None
    name = Path(session.cwd).name
    return name if name == session_id or view.session(name) is None else None
