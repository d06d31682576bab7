"""The sweeper: closes idle sessions, deletes those closed long ago, and removes what deleted ones left.

It closes and deletes only sessions with retention `ttl`. Each session is checked again inside the transaction
that changes it, so a prompt that arrives at the same moment either keeps it open or finds it closed.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from clawdforge.core.clock import SECOND, Clock
from clawdforge.core.log import LogService
from clawdforge.core.models.nodes import WishKind, WishRow
from clawdforge.core.ports import Homes, Store, SystemView, Tx, Workspaces
from clawdforge.core.rules.retention import Ages, idle_since
from clawdforge.core.rules.sessions import close_session
from clawdforge.core.rules.usage_days import day_of
from clawdforge.core.rules.webhooks import BEING_REMOVED, TRIED_FOR, give_up_late
from clawdforge.core.running.elsewhere import Elsewhere
from clawdforge.core.running.long_writes import LongWrite
from clawdforge.core.running.piece_box import PieceBox
from clawdforge.core.running.supervisor import Supervisor
from clawdforge.core.services.files import FileService
from clawdforge.core.services.webhooks import remove_endpoint
from clawdforge.core.trusted_time import TrustedTime
from clawdforge.wire.base import Micros
from clawdforge.wire.errors import SessionBusy, Unavailable
from clawdforge.wire.session import Retention

log = logging.getLogger(__name__)
PAGE = 200
COPY_SECS = 5.0  # for the copy after a turn that has just ended
PURGE_ROWS = 2000
STEP_SECS = 120.0
"""What takes longer for one session is no longer waited for; it goes on, and others have their turn."""
DELIVERIES_AGE = 3 * 86_400 * SECOND
"""So long a delivery of a webhook is kept after it was made, or given up."""
PIECES_AGE = 3600 * SECOND
"""So long a piece of a file is kept that nobody uses: it may have been sent for a use that comes next."""
CHANGES_AGE = 86_400 * SECOND
"""A reader of an app's changes that was away for longer reads the whole list again."""
Found = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Swept:
    """What one pass did."""

    soft_closed: int
    hard_deleted: int


class Sweeper:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        supervisor: Supervisor,
        elsewhere: Elsewhere,
        events: LogService,
        homes: Homes,
        workspaces: Workspaces,
        files: FileService,
        ages: Ages,
        box: PieceBox | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._supervisor = supervisor
        self._elsewhere = elsewhere
        self._log = events
        self._homes = homes
        self._workspaces = workspaces
        self._files = files
        self._ages = ages
        self._box = box
        self._time = TrustedTime(clock)
        self._one_pass = asyncio.Lock()
        self._slow: dict[str, asyncio.Task[bool]] = {}  # steps that took too long to be waited for

    async def run(self, every: float) -> None:
        """Sweep for ever. While the store is away, the next pass tries again."""
        while True:
            await asyncio.sleep(every)
            try:
                await self.sweep()
            except Unavailable as error:
                log.warning("no sweep: %s", error.message)

    async def sweep(self) -> Swept:
        """Do one pass. Two passes never overlap, so that each counts only what it did.

        Whoever comes second waits for the first, none of whose steps takes longer than `STEP_SECS`.
        """
        async with self._one_pass:
            now = self._time.now()
            idle_before = now - round(self._ages.idle * SECOND)
            closed_before = now - round(self._ages.closed * SECOND)
            closed = await self._for_each(
                lambda view, limit: view.idle_sessions(idle_before, limit),
                partial(self._close, before=idle_before),
            )
            deleted = await self._for_each(
                lambda view, limit: view.closed_sessions(closed_before, limit),
                partial(self._delete, before=closed_before),
            )
            await self._for_each(
                lambda view, limit: view.deleted_sessions(self._clock.now(), limit), self._purge
            )
            uploaded_before = now - round(self._ages.upload * SECOND)
            await self._attempt("uploads", partial(self._remove_uploads, uploaded_before))
            if self._ages.run:
                await self._attempt("runs", partial(self._remove_runs, now - round(self._ages.run * SECOND)))
            await self._attempt("late deliveries", partial(self._give_up_deliveries, now))
            await self._attempt("removed webhooks", self._finish_removals)
            await self._attempt("deliveries", partial(self._remove_deliveries, now - DELIVERIES_AGE))
            await self._attempt("changes", partial(self._forget_changes, now - CHANGES_AGE))
            if self._ages.usage:
                last_day = day_of(now - round(self._ages.usage * SECOND))
                await self._attempt("old usage", partial(self._forget_usage, last_day.isoformat()))
            if self._box is not None:
                await self._attempt("unused pieces", partial(self._box.remove_unused, now - PIECES_AGE))
            await self._attempt("unused space", self._give_back_space)
        return Swept(closed, deleted)

    async def _for_each(self, find: Callable[[SystemView, int], Found], do: "Step") -> int:
        """Do something to everything found, a page at a time. Returns how often it was done."""
        seen: set[str] = set()
        count = 0
        while True:
            limit = PAGE + len(seen)  # sessions that could not be done are found again; the next pass retries
            found = await self._store.read_system(lambda view, limit=limit: find(view, limit))  # type: ignore[misc]
            fresh = [(app, session_id) for app, session_id in found if session_id not in seen]
            if not fresh:
                return count
            for app, session_id in fresh:
                seen.add(session_id)
                count += await self._attempt(session_id, partial(do, app, session_id))

    async def _attempt(self, name: str, step: Callable[[], Coroutine[Any, Any, bool]]) -> bool:
        """Do one step as a task of its own: one that fails or hangs costs the others nothing."""
        if name in self._slow:
            return False  # an earlier pass is still at it
        task = self._slow[name] = asyncio.create_task(step(), name=f"sweep {name}")
        task.add_done_callback(lambda _: self._slow.pop(name, None))
        try:
            await asyncio.wait({task}, timeout=STEP_SECS)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if not task.done():
            log.error("a step of the sweep takes very long; it goes on beside", extra={"session_id": name})
            return False
        if task.cancelled():
            return False
        failure = task.exception()
        if isinstance(failure, Unavailable):
            raise failure  # the store is away, or the server stops: no other step could do better
        if failure is not None:
            log.error("the sweep could not do this", exc_info=failure, extra={"session_id": name})
        return failure is None and task.result()

    async def _remove_uploads(self, before: Micros) -> bool:
        while await self._files.remove_old(before, PAGE):
            pass
        return True

    async def _remove_runs(self, before: Micros) -> bool:
        while await self._store.write_system(lambda tx: tx.remove_runs(before, PAGE)):
            pass
        return True

    async def _give_up_deliveries(self, now: Micros) -> bool:
        """While webhooks are off too, so that what is too late leaves room for what is not."""
        waiting = await self._store.read_system(lambda view: view.waiting_deliveries())
        for one in waiting:
            if one.first <= now - TRIED_FOR:
                step = partial(give_up_late, endpoint_id=one.endpoint_id, at=now, limit=PAGE)
                await LongWrite(self._store, one.app).repeat(step)
        return True

    async def _finish_removals(self) -> bool:
        """Of webhooks whose removal was cut off."""
        for app, endpoint_id in await self._store.read_system(lambda view: view.endpoints_off(BEING_REMOVED)):
            await remove_endpoint(self._store, app, endpoint_id)
        return True

    async def _remove_deliveries(self, before: Micros) -> bool:
        while await self._store.write_system(lambda tx: tx.remove_deliveries(before, PAGE)):
            pass
        return True

    async def _forget_changes(self, before: Micros) -> bool:
        apps = await self._store.read_system(lambda view: view.apps_with_old_changes(before))
        for app in apps:
            await LongWrite(self._store, app).repeat(lambda tx: tx.forget_changes(before, PAGE))
        return True

    async def _forget_usage(self, before: str) -> bool:
        for app in await self._store.read_system(lambda view: view.apps_with_old_usage(before)):
            await LongWrite(self._store, app).repeat(lambda tx: tx.forget_usage(before, PAGE))
        return True

    async def _give_back_space(self) -> bool:
        while not await self._store.write_system(lambda tx: tx.give_back_space()):
            pass
        return True

    async def _close(self, app: str, session_id: str, *, before: Micros) -> bool:
        now = self._clock.now()
        try:
            async with self._supervisor.hold(app, session_id, COPY_SECS):
                return await self._store.write(app, lambda tx: close_idle(tx, session_id, before, now))
        except SessionBusy:
            return False

    async def _delete(self, app: str, session_id: str, *, before: Micros) -> bool:
        now = self._clock.now()
        if not await self._store.write(app, lambda tx: delete_closed(tx, session_id, before, now)):
            return False
        self._log.end_readers(session_id)
        return True

    async def _purge(self, app: str, session_id: str) -> bool:
        """Folders first: the row that names them is removed last, so that a crash leaves nothing unknown."""
        if not await self._supervisor.end_agent(app, session_id):
            return False  # it may still write to these folders; the next pass tries again
        try:
            await self._homes.remove(session_id)
            cwd = await self._store.read_system(lambda view: view.last_workspace(session_id))
            if cwd is not None:
                await self._remove_workspace(Path(cwd).name, session_id)
        except OSError:
            log.exception(
                "the folders of a deleted session could not be removed", extra={"session_id": session_id}
            )
            return False
        await self._elsewhere.ask_all(WishKind.REMOVE_HOME, app, session_id)
        if cwd is not None:
            await self._elsewhere.ask_all(WishKind.REMOVE_WORKSPACE, app, Path(cwd).name)
        await LongWrite(self._store, app).repeat(lambda tx: tx.purge(session_id, PURGE_ROWS))
        return True

    async def _remove_workspace(self, name: str, of: str) -> None:
        """The folder of that name on this node, unless a fork works in it whose source has moved away."""
        path = self._workspaces.own_path(name)
        if not await self._store.read_system(lambda view: view.works_in(path, of)):
            await asyncio.to_thread(self._workspaces.remove, name)

    async def remove_here(self, wish: WishRow) -> None:
        """Another node removes a deleted session: what this one has of it goes as well.

        What cannot be removed is set aside at the next start.
        """
        app, session_id = wish.app_name, wish.session_id
        if await self._store.read(app, lambda view: view.session(session_id)) is not None:
            return
        try:
            if wish.kind is WishKind.REMOVE_WORKSPACE:
                await self._remove_workspace(session_id, session_id)
            elif await self._supervisor.end_agent(app, session_id):
                await self._homes.remove(session_id)
        except OSError:
            log.exception(
                "what this node has of a deleted session could not be removed",
                extra={"session_id": session_id},
            )


class Step(Protocol):
    def __call__(self, app: str, session_id: str) -> Coroutine[Any, Any, bool]: ...


def close_idle(tx: Tx, session_id: str, before: Micros, at: Micros) -> bool:
    """Close the session if it is still idle. Returns whether it was closed."""
    session = tx.session(session_id)
    if session is None or session.closed_at is not None or session.retention is not Retention.TTL:
        return False
    if idle_since(session) >= before or tx.count_queued(session_id):
        return False
    return close_session(tx, session_id, "sweep_close", at) is False


def delete_closed(tx: Tx, session_id: str, before: Micros, at: Micros) -> bool:
    """Mark the session deleted if it has been closed since before then. Returns whether it was."""
    session = tx.session(session_id)
    if session is None or session.closed_at is None or session.retention is not Retention.TTL:
        return False
    if session.closed_at >= before:
        return False
    tx.change_session(session_id, deleted_at=at)
    tx.audit(session_id, "hard_delete", at, {"by": "sweeper"})
    return True
