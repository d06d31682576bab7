"""What other nodes want of this one: turns to run in its sessions, turns to stop, sessions to let go of.

What they tell is a hint that may be lost, so this looks by itself now and then. A node that drains lets go of
all its sessions, of each at its next boundary.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, Final

from clawdforge.core.models.nodes import WishKind, WishRow
from clawdforge.core.ports import Store, SystemView
from clawdforge.core.running.elsewhere import Elsewhere
from clawdforge.core.running.membership import Membership
from clawdforge.core.running.supervisor import Supervisor
from clawdforge.wire.admin import WaitsFor
from clawdforge.wire.errors import ForgeAPIError, StoreUnavailable

log = logging.getLogger(__name__)
LOOK_SECS: Final = 2.0
PLACE_SECS: Final = 0.5
"""A turn that waits for a place less long than this probably gets one here soon."""
Errand = Callable[[WishRow], Coroutine[Any, Any, None]]


class Wishes:
    def __init__(
        self,
        store: Store,
        membership: Membership,
        supervisor: Supervisor,
        elsewhere: Elsewhere,
        errands: Mapping[WishKind, Errand],
    ) -> None:
        """`errands` are what is wished of a node that need not hold the session."""
        self._errands = errands
        self._store = store
        self._membership = membership
        self._supervisor = supervisor
        self._elsewhere = elsewhere
        self._told: set[tuple[str, str]] = set()
        self._woken = asyncio.Event()
        self._look_at = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self._nothing_left = asyncio.Event()
        self._letting_go: set[str] = set()
        if store.peers is not None:
            store.peers.listen(self._on_told)
            membership.watch(self.look_soon)
            elsewhere.listen(self._leave_soon)

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

    async def until_drained(self) -> None:
        """Until this node, which drains, holds no session and runs nothing in one."""
        await self._nothing_left.wait()

    def _leave_soon(self, app: str, session_id: str) -> None:
        self._start(self._leave(app, session_id), f"leaving {session_id}")

    def _start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _on_told(self, app: str, session_id: str) -> None:
        self._told.add((app, session_id))
        self._woken.set()

    async def _do_told(self) -> None:
        self._woken.clear()
        await self._take_wishes()
        told, self._told = self._told, set()
        for app, session_id in told:
            if session_id:
                self._supervisor.wake(app, session_id)

    async def _look(self) -> None:
        """For what nobody told: wishes, turns that wait, and sessions that we hold for nothing."""
        await self._take_wishes()
        if self._membership.is_draining:
            await self._leave_all()
            return
        self._nothing_left.clear()
        node = self._membership.node
        to_run = await self._store.read_system(lambda view: view.sessions_to_run(node))
        self._elsewhere.note_waiting({session_id for _, session_id in to_run})
        for app, session_id in to_run:
            if not self._supervisor.has_worker(session_id):
                self._supervisor.wake(app, session_id)
        await self._offer_waiting()
        for app, session_id in await self._store.read_system(lambda view: view.held_sessions(node)):
            if not self._supervisor.has_agent(session_id) and session_id not in self._letting_go:
                self._letting_go.add(session_id)
                self._start(self._let_go(app, session_id), f"letting go of {session_id}")

    async def _offer_waiting(self) -> None:
        """Sessions that have waited for a place here while another node has one are left to that."""
        for one in self._supervisor.find_waiting(PLACE_SECS):
            if one.waits_for is WaitsFor.PLACE and one.session_id not in self._letting_go:
                self._letting_go.add(one.session_id)
                self._start(self._offer(one.app, one.session_id), f"offering {one.session_id}")

    async def _offer(self, app: str, session_id: str) -> None:
        try:
            await self._elsewhere.offer(app, session_id)
        except ForgeAPIError as error:  # the next look finds it again
            log.info("a session still waits for a place here: %s", error.message)
        except Exception:  # the top of a task: nothing above could report it
            log.exception("a session still waits for a place here", extra={"session_id": session_id})
        finally:
            self._letting_go.discard(session_id)

    async def _let_go(self, app: str, session_id: str) -> None:
        """Its files first, which may take long: a turn may have begun here meanwhile, and its agent live."""
        try:
            if await self._elsewhere.publish(session_id) and not self._supervisor.has_agent(session_id):
                await self._elsewhere.let_go(app, session_id)
        except ForgeAPIError as error:  # it stays held here, and the next look finds it again
            log.info("a session is still held: %s", error.message, extra={"session_id": session_id})
        except Exception:  # the top of a task: nothing above could report it
            log.exception("a session is still held", extra={"session_id": session_id})
        finally:
            self._letting_go.discard(session_id)

    async def _leave_all(self) -> None:
        """Of a session in which a turn runs, its worker lets go at the end of that."""
        node = self._membership.node

        def look(view: SystemView) -> tuple[list[tuple[str, str]], int]:
            return view.sessions_to_leave(node), view.held_counts().get(node, 0)

        to_leave, held = await self._store.read_system(look)
        for app, session_id in to_leave:
            if not self._supervisor.has_worker(session_id):
                self._leave_soon(app, session_id)
        if not held and self._supervisor.is_idle and not self._nothing_left.is_set():
            self._nothing_left.set()
            log.warning("this node is drained: others have its sessions, and it can be stopped")

    async def _leave(self, app: str, session_id: str) -> None:
        try:
            await self._supervisor.leave(app, session_id)
        except ForgeAPIError as error:  # the next look finds it again
            log.warning("a session was not left to others: %s", error.message)
        except Exception:  # the top of a task: nothing above could report it
            log.exception("a session was not left to others", extra={"session_id": session_id})
        else:
            self.look_soon()

    async def _take_wishes(self) -> None:
        node = self._membership.node
        if await self._store.read_system(lambda view: view.has_wishes(node)):
            for wish in await self._store.write_system(lambda tx: tx.take_wishes(node)):
                self._start(self._do(wish), f"wish {wish.kind} {wish.session_id}")

    async def _do(self, wish: WishRow) -> None:
        app, session_id = wish.app_name, wish.session_id
        try:
            if wish.kind is WishKind.CANCEL:
                await self._supervisor.cancel(app, session_id, wish.turn_index, rollback=wish.rollback)
            elif wish.kind is WishKind.TAKE:
                self._elsewhere.accept(session_id)
                self._supervisor.wake(app, session_id)
            elif wish.kind in self._errands:
                await self._errands[wish.kind](wish)
            elif wish.kind is WishKind.LEAVE:
                await self._supervisor.leave(app, session_id)
            else:
                log.warning("another node wished %s, which this version does not know", wish.kind)
        except ForgeAPIError as error:  # whoever wished it looks again
            log.warning("a wish of another node was not fulfilled: %s", error.message)
        except Exception:  # the top of a task: nothing above could report it
            log.exception("a wish of another node failed", extra={"session_id": session_id})
