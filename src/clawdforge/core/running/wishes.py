"""What other nodes want of this one: turns to run in its sessions, turns to stop, sessions to let go of.

What they tell is a hint that may be lost, so this looks by itself now and then.
"""

import asyncio
import logging
from contextlib import suppress
from typing import Final

from clawdforge.core.node_model import WishKind, WishRow
from clawdforge.core.ports import Store
from clawdforge.core.running.elsewhere import Elsewhere
from clawdforge.core.running.membership import Membership
from clawdforge.core.running.supervisor import Supervisor
from clawdforge.wire.errors import ForgeAPIError, SessionDamaged, StoreUnavailable

log = logging.getLogger(__name__)
LOOK_SECS: Final = 2.0


class Wishes:
    def __init__(
        self, store: Store, membership: Membership, supervisor: Supervisor, elsewhere: Elsewhere
    ) -> None:
        self._store = store
        self._membership = membership
        self._supervisor = supervisor
        self._elsewhere = elsewhere
        self._told: set[tuple[str, str]] = set()
        self._woken = asyncio.Event()
        self._look_at = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        if store.peers is not None:
            store.peers.listen(self._on_told)

    async def run(self) -> None:
        """Do what is wanted, for ever."""
        if not self._membership.has_peers:
            await asyncio.get_running_loop().create_future()
        loop = asyncio.get_running_loop()
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(self._look_at):
                    await self._woken.wait()
            try:
                await self._do_told()
                if loop.time() >= self._look_at:
                    self._look_at = loop.time() + LOOK_SECS
                    await self._look()
            except StoreUnavailable:
                await asyncio.sleep(LOOK_SECS)

    def look_soon(self) -> None:
        """There may be turns that nobody else runs."""
        self._look_at = 0.0
        self._woken.set()

    def _on_told(self, app: str, session_id: str) -> None:
        self._told.add((app, session_id))
        self._woken.set()

    async def _do_told(self) -> None:
        self._woken.clear()
        await self._take_wishes()
        told, self._told = self._told, set()
        for app, session_id in told:
            self._supervisor.wake(app, session_id)

    async def _look(self) -> None:
        """For what nobody told: wishes, turns that wait, and sessions that we hold for nothing."""
        await self._take_wishes()
        node = self._membership.node
        for app, session_id in await self._store.read_system(lambda view: view.sessions_to_run(node)):
            if not self._supervisor.has_worker(session_id):
                self._supervisor.wake(app, session_id)
        for app, session_id in await self._store.read_system(lambda view: view.held_sessions(node)):
            if not self._supervisor.has_agent(session_id):
                with suppress(SessionDamaged):  # it stays held here, and costs no other
                    await self._elsewhere.let_go(app, session_id)

    async def _take_wishes(self) -> None:
        node = self._membership.node
        if await self._store.read_system(lambda view: view.has_wishes(node)):
            for wish in await self._store.write_system(lambda tx: tx.take_wishes(node)):
                task = asyncio.create_task(self._do(wish), name=f"wish {wish.kind} {wish.session_id}")
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _do(self, wish: WishRow) -> None:
        app, session_id = wish.app_name, wish.session_id
        try:
            if wish.kind is WishKind.CANCEL:
                await self._supervisor.cancel(app, session_id, wish.turn_index, rollback=wish.rollback)
            else:
                await self._supervisor.leave(app, session_id)
        except ForgeAPIError as error:  # whoever wished it looks again
            log.warning("a wish of another node was not fulfilled: %s", error.message)
        except Exception:  # the top of a task: nothing above could report it
            log.exception("a wish of another node failed", extra={"session_id": session_id})
