"""Holds everybody who works in a folder while its files are put back.

Sessions may share a folder, or one may work inside another's. While files are put back none of their agents
lives, their turns wait, and no session begins there.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext

from clawdforge.core.models.rows import SessionRow
from clawdforge.core.models.workspaces import Area
from clawdforge.core.ports import Store
from clawdforge.core.rules.folders import area_of
from clawdforge.core.running.supervisor import HOLD_SECS, Supervisor
from clawdforge.wire.errors import SessionBusy


class FolderHolds:
    def __init__(self, store: Store, supervisor: Supervisor) -> None:
        self._store = store
        self._supervisor = supervisor
        self._held: list[Area] = []
        self._entering: list[Area] = []
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def enter(self, session: SessionRow) -> AsyncIterator[None]:
        """For the time in which a session is stored or opened again: waits while its folder is held.

        Whoever holds it gives up on turns after a while, and git has a bound; a request has its time limit.
        """
        area = area_of(session)
        while _overlaps(area, self._held):
            await self._changed.wait()
        self._entering.append(area)
        try:
            yield
        finally:
            self._remove(area, self._entering)

    @asynccontextmanager
    async def hold(
        self, session: SessionRow, within: float = HOLD_SECS, *, but_own: bool = False
    ) -> AsyncIterator[None]:
        """Keep the turns of everybody in this folder waiting, with no agent there alive.

        SessionBusy when a turn goes on for longer than `within` seconds. `but_own` is for a turn of the
        session itself, which has no agent yet; two of them take turns.
        """
        area, own = area_of(session), (session.app_name, session.session_id)
        until = asyncio.get_running_loop().time() + within
        aside = self._supervisor.stand_aside(session.session_id) if but_own else nullcontext()
        try:
            with aside:
                async with asyncio.timeout_at(until):
                    while _overlaps(area, self._held) or _overlaps(area, self._entering):
                        await self._changed.wait()
        except TimeoutError:
            raise SessionBusy("files of this folder are being put back already; try again later") from None
        self._held.append(area)
        try:
            found = await self._store.read_system(lambda view: view.sessions_in(area))
            async with AsyncExitStack() as stack:
                for one in sorted({own, *found} - ({own} if but_own else set())):
                    left = max(until - asyncio.get_running_loop().time(), 0)
                    try:
                        await stack.enter_async_context(self._supervisor.hold(*one, left, or_aside=True))
                    except SessionBusy as error:
                        raise error if one == own else _explain_busy(one, own) from error
                yield
        finally:
            self._remove(area, self._held)

    def _remove(self, area: Area, areas: list[Area]) -> None:
        areas.remove(area)
        self._changed.set()
        self._changed = asyncio.Event()


def _overlaps(area: Area, others: list[Area]) -> bool:
    return any(area.overlaps(other) for other in others)


def _explain_busy(other: tuple[str, str], own: tuple[str, str]) -> SessionBusy:
    named = f"session {other[1]}" if other[0] == own[0] else "another session"
    return SessionBusy(
        f"{named} is at work in the same folder; wait for its turn or cancel it, or undo without files"
    )
